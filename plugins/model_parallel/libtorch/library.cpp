#include "troupe/model_parallel/executor.hpp"

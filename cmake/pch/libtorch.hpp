// The same for the one folder that includes LibTorch.
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <google/protobuf/message.h>

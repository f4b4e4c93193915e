// A library that is no plugin, although a manifest says so.
extern "C" __attribute__((visibility("default"))) int not_a_plugin() { return 0; }

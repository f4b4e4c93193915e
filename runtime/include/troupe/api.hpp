#pragma once

/// Marks what a shared library of Troupe exports; everything else is hidden.
#define TROUPE_API __attribute__((visibility("default")))

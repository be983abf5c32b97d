// SPDX-License-Identifier: MIT
// How fast this machine reads memory: the roof over decoding.
#pragma once

#include "engine/parallel.h"

namespace mnm {

/// Bytes per second of plain wide reads over a buffer larger than the caches, by all the threads;
/// the median of several passes.
double read_bandwidth(Parallel& parallel);

} // namespace mnm

// SPDX-License-Identifier: MIT
// What this machine allows: how fast it reads memory, and how fast it multiplies.
#pragma once

#include "engine/parallel.h"
#include "formats/result.h"
#include "kernels/kernels.h"

namespace mnm {

/// Bytes per second of plain wide reads over a buffer larger than the caches, by all the threads;
/// the median of some passes. Takes about a tenth of a second and half a gigabyte; the error is
/// that there is not so much memory.
Result<double> read_bandwidth(Parallel& parallel, const kernels::Kernels& kernels);

/// Multiply-adds per second of the instruction that the integer products of this level use, on
/// registers alone, by all the threads; the median of some passes.
double integer_peak(Parallel& parallel, const kernels::Kernels& kernels);

} // namespace mnm

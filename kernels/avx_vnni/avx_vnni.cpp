// SPDX-License-Identifier: MIT
// AVX-VNNI: vpdpbusd on ymm registers, unsigned weights by signed activations.
#include "kernels/table.h"

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

namespace mnm::kernels {
namespace {

struct Ops {
    static constexpr int q8_offset = 128;

    static __m256i q8_step(__m256i sums, __m256i w, __m256i a) noexcept {
        return _mm256_dpbusd_avx_epi32(sums, w, a);
    }
    static __m256i q4_step(__m256i sums, __m256i w, __m256i a) noexcept {
        return _mm256_dpbusd_avx_epi32(sums, w, a);
    }
    static __m256i q4_finish(__m256i sums) noexcept { return sums; }
};

#include "kernels/src/ymm_products.h"

} // namespace

void install_avx_vnni(Kernels& table) noexcept;
void install_avx_vnni(Kernels& table) noexcept {
    table.matmul_q8 = matmul_q8;
    table.matmul_q4 = matmul_q4;
    table.dot_loop = dot_loop;
}

} // namespace mnm::kernels

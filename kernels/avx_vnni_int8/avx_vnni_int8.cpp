// SPDX-License-Identifier: MIT
// AVX-VNNI-INT8: vpdpbssd, signed by signed, so q8 weights are used as they are.
#include "kernels/table.h"

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

namespace mnm::kernels {
namespace {

struct Ops {
    static constexpr int q8_offset = 0;

    /// GCC 12 and clang 14 know no intrinsic for it, their assemblers do. {vex}: the EVEX form of
    /// the same name belongs to AVX10.2, which these processors lack.
    static __m256i dot(__m256i sums, __m256i w, __m256i a) noexcept {
#ifdef MNM_EMULATE_DPBSSD // tests run this level's code on processors without the instruction
        const __m256i ones = _mm256_set1_epi16(1);
        const __m256i pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(a, w));
        return _mm256_add_epi32(sums, _mm256_madd_epi16(pairs, ones));
#else
        __asm__("%{vex%} vpdpbssd %2, %1, %0" : "+x"(sums) : "x"(w), "x"(a));
        return sums;
#endif
    }
    static __m256i q8_step(__m256i sums, __m256i w, __m256i a) noexcept {
        return dot(sums, w, a);
    }
    static __m256i q4_step(__m256i sums, __m256i w, __m256i a) noexcept {
        return dot(sums, w, a);
    }
    static __m256i q4_finish(__m256i sums) noexcept {
        return sums;
    }
};

#include "kernels/src/ymm_products.h"

} // namespace

void install_avx_vnni_int8(Kernels& table) noexcept;
void install_avx_vnni_int8(Kernels& table) noexcept {
    table.matmul_q8 = matmul_q8;
    table.matmul_q4 = matmul_q4;
    table.dot_loop = dot_loop;
}

} // namespace mnm::kernels

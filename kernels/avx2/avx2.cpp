// SPDX-License-Identifier: MIT
// AVX2 with FMA: pairs of byte products in 16 bits, widened to 32.
#include "kernels/table.h"

#include "kernels/avx2/lanes.h"

namespace mnm::kernels {
namespace {

struct Ops {
    static constexpr int q8_offset = 0;

    /// vpmaddubsw saturates at 2^15: |w| (as unsigned, so -128 is 128) times a with w's sign stays
    /// below, 2 * 128 * 127.
    static __m256i q8_step(__m256i sums, __m256i w, __m256i a) noexcept {
        const __m256i pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(a, w));
        return _mm256_add_epi32(sums, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
    }
    /// Eight steps of at most 2 * 15 * 127 fit into 16 bits.
    static __m256i q4_step(__m256i sums, __m256i w, __m256i a) noexcept {
        return _mm256_add_epi16(sums, _mm256_maddubs_epi16(w, a));
    }
    static __m256i q4_finish(__m256i sums) noexcept {
        return _mm256_madd_epi16(sums, _mm256_set1_epi16(1));
    }
};

#include "kernels/src/ymm_products.h"

} // namespace

void install_avx2(Kernels& table) noexcept;
void install_avx2(Kernels& table) noexcept {
    install_float_kernels(table);
    table.matmul_q8 = matmul_q8;
    table.matmul_q4 = matmul_q4;
    table.dot_loop = dot_loop;
    table.sum_words = sum_words;
}

} // namespace mnm::kernels

// SPDX-License-Identifier: MIT
// AVX-512 with VNNI: sixteen lanes are one register, sixteen rows one block.
#include "kernels/table.h"

#include "kernels/avx512_vnni/lanes.h"
#include "kernels/avx512_vnni/panel_products.h"

namespace mnm::kernels {

void install_avx512_vnni(Kernels& table) noexcept;
void install_avx512_vnni(Kernels& table) noexcept {
    install_float_kernels(table);
    table.matmul_q8 = matmul_q8;
    table.matmul_q4 = matmul_q4;
    table.dot_loop = dot_loop;
    table.sum_words = sum_words;
}

} // namespace mnm::kernels

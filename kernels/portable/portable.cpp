// SPDX-License-Identifier: MIT
// 128-bit vectors through simde: SSE4.1 on x86, NEON on ARM, plain C elsewhere.
#include "kernels/table.h"

#include "kernels/portable/lanes.h"
#include "kernels/portable/products.h"

namespace mnm::kernels {

void install_portable(Kernels& table) noexcept;
void install_portable(Kernels& table) noexcept {
    install_float_kernels(table);
    table.matmul_q8 = matmul_q8;
    table.matmul_q4 = matmul_q4;
    table.dot_loop = dot_loop;
}

} // namespace mnm::kernels

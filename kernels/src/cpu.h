// SPDX-License-Identifier: MIT
// What this processor and its operating system allow.
#pragma once

namespace mnm::kernels {

struct Cpu {
    bool sse41 = false;
    bool avx2 = false; ///< with FMA, and ymm state enabled by the system
    bool avx_vnni = false;
    bool avx_vnni_int8 = false;
    bool avx512_vnni = false; ///< F, BW, DQ, VL and VNNI, and zmm state enabled by the system
    bool amx_int8 = false;    ///< with avx512_vnni, and tiles allowed to this process by the system
    bool dotprod = false;     ///< AArch64 SDOT/UDOT
};

Cpu detect_cpu() noexcept;

} // namespace mnm::kernels

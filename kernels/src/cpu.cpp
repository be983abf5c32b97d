// SPDX-License-Identifier: MIT
// Feature bits from CPUID and XCR0, or from the system on AArch64.
#include "kernels/src/cpu.h"

#include <cstdint>

#if defined(__x86_64__) || defined(_M_X64)
#if defined(_MSC_VER) && !defined(__clang__)
#include <intrin.h>
#else
#include <cpuid.h>
#endif
#ifdef __linux__
#include <sys/syscall.h>
#include <unistd.h>
#endif
#elif defined(__aarch64__) && defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#elif defined(_M_ARM64) || (defined(__aarch64__) && defined(_WIN32))
#include <windows.h>
#endif

namespace mnm::kernels {

#if defined(__x86_64__) || defined(_M_X64)
namespace {

struct Registers {
    std::uint32_t a = 0, b = 0, c = 0, d = 0;
};

Registers cpuid(std::uint32_t leaf, std::uint32_t subleaf) noexcept {
    Registers r;
#if defined(_MSC_VER) && !defined(__clang__)
    int out[4];
    __cpuidex(out, static_cast<int>(leaf), static_cast<int>(subleaf));
    r = {static_cast<std::uint32_t>(out[0]), static_cast<std::uint32_t>(out[1]),
         static_cast<std::uint32_t>(out[2]), static_cast<std::uint32_t>(out[3])};
#else
    __cpuid_count(leaf, subleaf, r.a, r.b, r.c, r.d);
#endif
    return r;
}

/// Which register states the operating system saves; only to be asked when OSXSAVE is set.
std::uint64_t extended_control() noexcept {
#if defined(_MSC_VER) && !defined(__clang__)
    return _xgetbv(0);
#else
    std::uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (std::uint64_t{high} << 32) | low;
#endif
}

/// Linux gives a process its tiles when it asks for them.
bool tiles_permitted() noexcept {
#ifdef __linux__
    constexpr long request_permission = 0x1023, tile_data = 18; // ARCH_REQ_XCOMP_PERM
    return syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
#else
    return false;
#endif
}

constexpr bool bit(std::uint32_t word, unsigned index) {
    return (word >> index & 1U) != 0;
}

} // namespace

Cpu detect_cpu() noexcept {
    Cpu cpu;
    const std::uint32_t leaves = cpuid(0, 0).a;
    if (leaves < 1) return cpu;
    const Registers one = cpuid(1, 0);
    cpu.sse41 = bit(one.c, 19);
    const bool osxsave = bit(one.c, 27);
    if (!osxsave || leaves < 7) return cpu;

    const std::uint64_t state = extended_control();
    const bool ymm = (state & 0x06) == 0x06;
    const bool zmm = (state & 0xE6) == 0xE6;
    const Registers seven = cpuid(7, 0);
    const Registers seven_one = seven.a >= 1 ? cpuid(7, 1) : Registers{};
    // AVX, FMA, F16C and AVX2: no processor has the last without the others, but a virtual one may.
    cpu.avx2 = ymm && bit(one.c, 28) && bit(one.c, 12) && bit(one.c, 29) && bit(seven.b, 5);
    cpu.avx_vnni = cpu.avx2 && bit(seven_one.a, 4);
    cpu.avx_vnni_int8 = cpu.avx2 && bit(seven_one.d, 4);
    cpu.avx512_vnni = zmm && cpu.avx2 && bit(seven.b, 16) && bit(seven.b, 17) && bit(seven.b, 30) &&
                      bit(seven.b, 31) && bit(seven.c, 11);
    const bool tiles = (state & 0x60000) == 0x60000;
    cpu.amx_int8 =
        tiles && cpu.avx512_vnni && bit(seven.d, 24) && bit(seven.d, 25) && tiles_permitted();
    return cpu;
}

#elif defined(__aarch64__) && defined(__linux__)

Cpu detect_cpu() noexcept {
    Cpu cpu;
    cpu.dotprod = (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0;
    return cpu;
}

#elif defined(_M_ARM64) || (defined(__aarch64__) && defined(_WIN32))

Cpu detect_cpu() noexcept {
    Cpu cpu;
    cpu.dotprod = IsProcessorFeaturePresent(43) != 0; // PF_ARM_V82_DP_INSTRUCTIONS_AVAILABLE
    return cpu;
}

#elif defined(__aarch64__) && defined(__APPLE__)

Cpu detect_cpu() noexcept {
    Cpu cpu;
    cpu.dotprod = true; // every Apple processor of this architecture
    return cpu;
}

#else

Cpu detect_cpu() noexcept {
    return {};
}

#endif

} // namespace mnm::kernels

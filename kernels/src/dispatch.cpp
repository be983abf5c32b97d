// SPDX-License-Identifier: MIT
// The list of levels and their tables: ref first, then each usable level overriding what it
// improves.
#include "kernels/kernels.h"

#include "kernels/built_levels.h"
#include "kernels/src/cpu.h"

#include <array>
#include <memory>

namespace mnm::kernels {

// Each level's only exported function: puts its kernels into a table.
void install_ref(Kernels& table) noexcept;
void install_portable(Kernels& table) noexcept;
void install_avx2(Kernels& table) noexcept;
void install_avx_vnni(Kernels& table) noexcept;
void install_avx_vnni_int8(Kernels& table) noexcept;
void install_avx512_vnni(Kernels& table) noexcept;
void install_amx_int8(Kernels& table) noexcept;
void install_neon_dotprod(Kernels& table) noexcept;

namespace {

struct Level {
    const char* name;
    bool (*usable)(const Cpu& cpu);
    void (*install)(Kernels& table) noexcept;
};

// Slowest first: this is the order of the ladder.
constexpr Level levels[] = {
    {"ref", [](const Cpu&) { return true; }, install_ref},
#ifdef MNM_LEVEL_PORTABLE
#if defined(__x86_64__) || defined(_M_X64)
    {"portable", [](const Cpu& cpu) { return cpu.sse41; }, install_portable},
#else
    {"portable", [](const Cpu&) { return true; }, install_portable},
#endif
#endif
#ifdef MNM_LEVEL_AVX2
    {"avx2", [](const Cpu& cpu) { return cpu.avx2; }, install_avx2},
#endif
#ifdef MNM_LEVEL_AVX_VNNI
    {"avx_vnni", [](const Cpu& cpu) { return cpu.avx_vnni; }, install_avx_vnni},
#endif
#ifdef MNM_LEVEL_AVX_VNNI_INT8
    {"avx_vnni_int8", [](const Cpu& cpu) { return cpu.avx_vnni_int8; }, install_avx_vnni_int8},
#endif
#ifdef MNM_LEVEL_AVX512_VNNI
    {"avx512_vnni", [](const Cpu& cpu) { return cpu.avx512_vnni; }, install_avx512_vnni},
#endif
#ifdef MNM_LEVEL_AMX_INT8
    {"amx_int8", [](const Cpu& cpu) { return cpu.amx_int8; }, install_amx_int8},
#endif
#ifdef MNM_LEVEL_NEON_DOTPROD
    {"neon_dotprod", [](const Cpu& cpu) { return cpu.dotprod; }, install_neon_dotprod},
#endif
};
constexpr std::size_t level_count = std::size(levels);

struct Registry {
    std::array<bool, level_count> usable{};
    std::array<Kernels, level_count> tables{};

    Registry() {
        const Cpu cpu = detect_cpu();
        Kernels table{};
        for (std::size_t i = 0; i < level_count; ++i) {
            usable[i] = levels[i].usable(cpu);
            if (!usable[i]) continue;
            levels[i].install(table);
            table.level = levels[i].name;
            tables[i] = table;
        }
    }
};

const Registry& registry() {
    static const Registry instance;
    return instance;
}

} // namespace

std::size_t matmul_scratch(std::size_t cols) noexcept {
    // A panel of the widest tile: 32 rows as 16-bit numbers (or 16 of floats) and their scales.
    const std::size_t rows = 32;
    const std::size_t scales = rows * (cols / group) * sizeof(float);
    return rows * cols * 2 + scales + 4096;
}

std::vector<std::string> built_levels() {
    std::vector<std::string> names;
    for (const Level& level : levels)
        names.emplace_back(level.name);
    return names;
}

std::vector<std::string> usable_levels() {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < level_count; ++i) {
        if (registry().usable[i]) names.emplace_back(levels[i].name);
    }
    return names;
}

const Kernels* find(const std::string& level) {
    for (std::size_t i = 0; i < level_count; ++i) {
        if (registry().usable[i] && level == levels[i].name) return &registry().tables[i];
    }
    return nullptr;
}

const Kernels& best() {
    std::size_t fastest = 0;
    for (std::size_t i = 0; i < level_count; ++i) {
        if (registry().usable[i]) fastest = i;
    }
    return registry().tables[fastest];
}

} // namespace mnm::kernels

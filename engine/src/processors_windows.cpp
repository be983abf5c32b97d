// SPDX-License-Identifier: MIT
// Counting the fast physical cores this process may use, on Windows.
#include "engine/processors.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <vector>

#ifndef NOMINMAX
#define NOMINMAX
#endif
#include <windows.h>

namespace mnm {
namespace {

/// What GetLogicalProcessorInformationEx says of a physical core.
struct Core {
    KAFFINITY mask;
    BYTE efficiency; ///< the higher, the faster
};

std::vector<Core> all_cores() {
    DWORD bytes = 0;
    GetLogicalProcessorInformationEx(RelationProcessorCore, nullptr, &bytes);
    std::vector<std::byte> buffer(bytes);
    auto* const first = reinterpret_cast<SYSTEM_LOGICAL_PROCESSOR_INFORMATION_EX*>(buffer.data());
    std::vector<Core> cores;
    if (bytes == 0 || !GetLogicalProcessorInformationEx(RelationProcessorCore, first, &bytes)) {
        return cores;
    }
    for (DWORD at = 0; at < bytes;) {
        const auto* const item =
            reinterpret_cast<const SYSTEM_LOGICAL_PROCESSOR_INFORMATION_EX*>(buffer.data() + at);
        if (item->Size == 0) break;
        const PROCESSOR_RELATIONSHIP& core = item->Processor;
        // The byte after Flags is EfficiencyClass; older headers of MinGW call it reserved.
        const BYTE efficiency = reinterpret_cast<const BYTE*>(&core)[1];
        cores.push_back({core.GroupMask[0].Mask, efficiency});
        at += item->Size;
    }
    return cores;
}

} // namespace

Processors usable_processors(const std::string&) {
    // An affinity mask covers one group of up to 64 processors; a process that spans groups has
    // none.
    DWORD_PTR process = 0;
    DWORD_PTR system = 0;
    const bool masked = GetActiveProcessorGroupCount() == 1 &&
                        GetProcessAffinityMask(GetCurrentProcess(), &process, &system) &&
                        process != 0;
    unsigned count = masked ? static_cast<unsigned>(std::popcount(process))
                            : static_cast<unsigned>(GetActiveProcessorCount(ALL_PROCESSOR_GROUPS));
    const char* reason = "affinity";
    unsigned cores = 0;
    unsigned fast = 0;
    int best = -1;
    for (const Core& core : all_cores()) {
        if (masked && (core.mask & process) == 0) continue;
        ++cores;
        if (core.efficiency > best) best = core.efficiency, fast = 0;
        if (core.efficiency == best) ++fast;
    }
    if (cores > 0 && cores < count) count = cores, reason = "physical cores";
    if (fast > 0 && fast < count) count = fast, reason = "fast cores";
    count = std::max(count, 1U);
    const char* noun = count == 1 ? " processor (" : " processors (";
    return {count, std::to_string(count) + noun + reason + ")"};
}

} // namespace mnm

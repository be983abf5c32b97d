// SPDX-License-Identifier: MIT
// mnm eval --study: its flags, and what comes of them.
#pragma once

#include "cli/options.h"
#include "engine/analysis/memory_bound.h"
#include "engine/analysis/study.h"
#include "engine/evaluate.h"
#include "engine/model.h"
#include "formats/result.h"

#include <nlohmann/json_fwd.hpp>

#include <optional>
#include <string>
#include <vector>

namespace mnm::cli {

struct StudyFlags {
    bool study = false;
    std::string report;                   ///< page to write; empty: none
    std::string bits;                     ///< "2-8" or "3,4,8"; empty: the default
    std::string grids;                    ///< "Q0.7,Q1.6"; empty: the default
    std::string matrix;                   ///< of the stale-scale experiment
    std::optional<double> bandwidth_gb_s; ///< of another machine
};

/// --study and the flags that need it.
void add_study(CLI::App& parser, StudyFlags& flags);

/// "2-8" or "3,4,8" as a sorted list without repeats; empty for anything else.
std::vector<int> parse_bits(const std::string& text);
/// "Q0.7,Q1.6"; empty for anything else.
std::vector<FixedPoint> parse_grids(const std::string& text);

/// A study with what only the program knows.
struct StudyResult {
    Study study;
    MemoryStudy memory;
    std::string model;
    std::string data;
    std::string command; ///< as a shell takes it
    double seconds = 0;
};

/// Runs the study, writes the page that was asked for and prints the figures. Rows beyond the
/// first 1,024 tokens are dropped where `all_rows` is false.
Result<void> study(const Model& model, std::vector<EvaluationRow> rows, bool all_rows,
                   const StudyFlags& flags, StudyResult result, const EngineOptions& engine,
                   const OutputOptions& report);

nlohmann::ordered_json study_json(const StudyResult& result);
std::string study_text(const StudyResult& result);
/// One page of HTML that needs nothing beside it.
std::string study_page(const StudyResult& result);

} // namespace mnm::cli

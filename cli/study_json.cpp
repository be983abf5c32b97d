// SPDX-License-Identifier: MIT
// A study for scripts.
#include "cli/study.h"

#include <nlohmann/json.hpp>

#include <cmath>

namespace mnm::cli {
namespace {

using Json = nlohmann::ordered_json;

Json range(const SiteStudy& site) {
    Json outliers = Json::array();
    for (const std::size_t channel : site.outliers)
        outliers.push_back({{"channel", channel}, {"max", site.ranges.channel_max[channel]}});
    return {{"site", site.name},
            {"max", site.ranges.max},
            {"channel_max", site.ranges.channel_max},
            {"channel_max_median", site.ranges.median_channel()},
            {"token_max_low", site.ranges.token_max_low},
            {"token_max_mean", site.ranges.token_max_mean},
            {"outlier_channels", outliers},
            {"snr_db",
             {{"bits", {4, 5, 6, 7, 8}},
              {"per tensor", site.snr_db[0]},
              {"per token", site.snr_db[1]},
              {"group of 32", site.snr_db[2]}}}};
}

Json score(const Score& score) {
    return {{"loss_nats", score.loss_nats},
            {"perplexity", score.perplexity},
            {"kl_bits", score.kl_bits},
            {"top1_agreement", score.top1_agreement}};
}

Json named(const std::string& name, Json values) {
    Json json = {{"name", name}};
    json.update(values);
    return json;
}

Json errors(const ErrorStudy& study) {
    return {{"granularity", study.granularity.name()},
            {"count", study.errors.count()},
            {"mean", study.errors.mean()},
            {"twelve_mean_square", study.errors.twelve_mean_square()},
            {"twelve_variance", study.errors.twelve_variance()},
            {"max", study.errors.max()},
            {"histogram", study.errors.histogram()}};
}

Json matrix(const MatrixStudy& study, const std::vector<int>& bits) {
    Json snr = Json::object(), line = Json::array();
    const auto granularities = studied_granularities();
    for (std::size_t i = 0; i < granularities.size(); ++i)
        snr[granularities[i].name()] = study.snr_db[i];
    for (const int b : bits)
        line.push_back(model_line_db(b, study.magnitudes.crest()));
    return {{"name", study.name},
            {"rows", study.rows},
            {"cols", study.cols},
            {"max", study.magnitudes.max},
            {"rms", study.magnitudes.rms},
            {"crest", study.magnitudes.crest()},
            {"snr_db", snr},
            {"model_line_db", line},
            {"gained_db", gained_db(study.snr_db[0])}};
}

Json curve(const RateCurve& curve) {
    Json points = Json::array();
    for (const RatePoint& p : curve.points) {
        points.push_back({{"name", p.name},
                          {"bits", p.bits == 0 ? Json() : Json(p.bits)},
                          {"bits_per_weight", p.bits_per_weight},
                          {"loss_nats", p.loss_nats},
                          {"perplexity", p.perplexity},
                          {"kl_bits", p.kl_bits},
                          {"top1_agreement", p.top1_agreement},
                          {"description_bits",
                           {{"weights", p.length.weights},
                            {"corpus", p.length.corpus},
                            {"total", p.length.total()}}}});
    }
    Json json = {{"name", curve.name}, {"points", points}, {"knee", nullptr}};
    if (curve.knee) {
        const Knee& k = *curve.knee;
        json["knee"] = {{"point", curve.points[k.index].name},
                        {"bits_per_weight", curve.points[k.index].bits_per_weight},
                        {"floor_kl_bits", k.floor},
                        {"after", k.before ? Json(curve.points[*k.before].name) : Json()}};
    }
    return json;
}

Json memory(const MemoryStudy& study) {
    Json cases = Json::array();
    for (const MemoryCase& one : study.cases) {
        cases.push_back({{"weights", one.weights},
                         {"cache", one.cache},
                         {"weight_bytes", one.weight_bytes},
                         {"cache_bytes_per_token", one.cache_bytes_per_token},
                         {"overtaking_context", one.overtaking_context},
                         {"decode_bound_tokens_per_second", one.bounds},
                         {"other_bound_tokens_per_second", one.other_bounds}});
    }
    return {{"read_bandwidth_gb_s", study.bandwidth / 1e9},
            {"other_bandwidth_gb_s",
             study.other_bandwidth ? Json(*study.other_bandwidth / 1e9) : Json()},
            {"context", study.context},
            {"contexts", study.contexts},
            {"cases", cases}};
}

/// f(x) of each, in an array.
template <class T, class F>
Json each(const std::vector<T>& values, F&& f) {
    Json array = Json::array();
    for (const T& value : values)
        array.push_back(f(value));
    return array;
}

} // namespace

nlohmann::ordered_json study_json(const StudyResult& result) {
    const Study& s = result.study;
    const auto trial = [](const Trial& t) { return named(t.name, score(t.score)); };
    return {
        {"model", result.model},
        {"data", result.data},
        {"command", result.command},
        {"seconds", result.seconds},
        {"parameters", s.parameters},
        {"rows", s.rows},
        {"tokens", s.tokens},
        {"targets", s.targets},
        {"bits", s.bits},
        {"main_bits", s.main_bits},
        {"reference",
         {{"loss_nats", s.reference.loss_nats}, {"perplexity", s.reference.perplexity}}},
        {"raw_corpus_bits", s.raw_corpus_bits},
        {"matrices", each(s.matrices, [&](const MatrixStudy& m) { return matrix(m, s.bits); })},
        {"errors_in_steps", each(s.errors, errors)},
        {"grids",
         each(s.grids,
              [](const GridStudy& g) {
                  return Json{
                      {"grid", g.grid.name()},
                      {"word", g.grid.word()},
                      {"rounding", g.grid.rounding == Rounding::nearest ? "nearest" : "floor"},
                      {"overflow", g.grid.overflow == Overflow::saturate ? "saturate" : "wrap"},
                      {"overflows", g.overflows},
                      {"snr_db", g.snr_db}};
              })},
        {"knee_rule",
         {{"factor", s.knee_rule.factor}, {"least_floor_kl_bits", s.knee_rule.least_floor}}},
        {"curves", each(s.curves, curve)},
        {"activations", {{"sites", each(s.sites, range)}, {"trials", each(s.activations, trial)}}},
        {"stale_scale",
         {{"matrix", s.stale_matrix},
          {"trials", each(s.stale,
                          [](const StaleStudy& t) {
                              Json json = {{"scale_share", t.scale_share},
                                           {"overflow",
                                            t.overflow == Overflow::saturate ? "saturate" : "wrap"},
                                           {"overflows", t.overflows},
                                           {"snr_db", t.snr_db}};
                              json.update(score(t.score));
                              return json;
                          })}}},
        {"memory", memory(result.memory)},
        {"caches", each(s.caches, trial)},
        {"sensitivity",
         {{"crest_correlation", s.crest_correlation},
          {"noise_correlation", s.noise_correlation},
          {"matrices", each(s.sensitivity,
                            [](const Sensitivity& m) {
                                Json json = {{"name", m.name},
                                             {"crest", m.crest},
                                             {"squared_error", m.error.noise},
                                             {"snr_db", m.error.snr_db()}};
                                json.update(score(m.score));
                                return json;
                            })}}},
        {"foldings", each(s.foldings,
                          [](const FoldingStudy& f) {
                              return Json{{"name", f.name},
                                          {"exact_kl_bits", f.exact.kl_bits},
                                          {"weights_kl_bits", f.weights.kl_bits},
                                          {"activations_kl_bits", f.activations.kl_bits},
                                          {"both_kl_bits", f.both.kl_bits}};
                          })},
        {"notes", s.notes},
    };
}

} // namespace mnm::cli

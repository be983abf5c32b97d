// SPDX-License-Identifier: MIT
// Small models made of random numbers, and a plain conversion, for tests that need a file to read.
#pragma once

#include "formats/atomic_file.h"
#include "formats/model_file.h"

#include <atomic>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace mnm::tests {

/// A folder of its own for one test, removed at the end.
class TempFolder {
  public:
    TempFolder() {
        static std::atomic<unsigned> count{0};
        std::random_device random;
        path_ = std::filesystem::temp_directory_path() /
                ("mnm-test-" + std::to_string(random()) + "-" + std::to_string(count++));
        std::filesystem::create_directories(path_);
    }
    ~TempFolder() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    TempFolder(const TempFolder&) = delete;
    TempFolder& operator=(const TempFolder&) = delete;

    /// The name of a file in it.
    std::string operator/(const std::string& name) const { return (path_ / name).string(); }
    const std::filesystem::path& path() const { return path_; }
    /// Names of everything in it.
    std::vector<std::string> list() const {
        std::vector<std::string> names;
        for (const auto& entry : std::filesystem::directory_iterator(path_))
            names.push_back(entry.path().filename().string());
        return names;
    }

  private:
    std::filesystem::path path_;
};

/// The message of a result that may have none, for BOOST_REQUIRE_MESSAGE, which looks before it
/// fails.
template <class T>
std::string why(const Result<T>& result) {
    return result ? std::string() : result.error().message;
}

inline std::vector<std::byte> read_bytes(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
    const auto* first = reinterpret_cast<const std::byte*>(text.data());
    return {first, first + text.size()};
}

inline void write_bytes(const std::string& path, std::span<const std::byte> bytes) {
    // Some file systems flush a file that is cut and written again; a new one costs nothing.
    std::filesystem::remove(path);
    std::ofstream out(path, std::ios::binary);
    out.write(reinterpret_cast<const char*>(bytes.data()),
              static_cast<std::streamsize>(bytes.size()));
    if (!out) throw std::runtime_error("cannot write " + path);
}

/// The same numbers on every system (splitmix64).
class Random {
  public:
    explicit Random(std::uint64_t seed) : state_(seed) {}
    std::uint64_t next() {
        std::uint64_t z = state_ += 0x9e3779b97f4a7c15u;
        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
        z = (z ^ z >> 27) * 0x94d049bb133111ebu;
        return z ^ z >> 31;
    }
    /// In [0, 1).
    double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }
    /// Nearly normal, mean 0, deviation 1.
    float normal() {
        double sum = 0;
        for (int i = 0; i < 12; ++i)
            sum += uniform();
        return static_cast<float>(sum - 6);
    }

  private:
    std::uint64_t state_;
};

inline std::vector<float> random_floats(std::size_t count, std::uint64_t seed) {
    Random random(seed);
    std::vector<float> x(count);
    for (float& v : x)
        v = random.normal();
    return x;
}

/// 2 layers x 64, 4 query heads and 2 key/value heads of 16, feed-forward 96, 288 tokens.
inline ModelConfig small_config() {
    ModelConfig config;
    config.layers = 2;
    config.width = 64;
    config.heads = 4;
    config.kv_heads = 2;
    config.head_dim = 16;
    config.ffn = 96;
    config.vocab = 288;
    config.context = 64;
    return config;
}

/// A valid tokenizer.bin: 256 bytes, up to eight merges, 16 specials. vocab is at least 272.
inline std::vector<std::byte> tiny_tokenizer(std::uint32_t vocab, std::uint64_t hash = 7) {
    const std::uint32_t pairs[][2] = {{'h', 'e'}, {'l', 'l'}, {256, 257}, {258, 'o'},
                                      {' ', 't'}, {'a', 'n'}, {261, 'd'}, {' ', 262}};
    const std::uint32_t room = vocab - 256 - 16;
    const std::uint32_t merges = room < 8 ? room : 8;
    std::vector<std::byte> out;
    const auto put = [&](const void* from, std::size_t size) {
        const auto* bytes = static_cast<const std::byte*>(from);
        out.insert(out.end(), bytes, bytes + size);
    };
    const std::uint32_t header[] = {vocab, merges, vocab - 16, 16};
    put("MNTOKZR1", 8);
    put(header, sizeof header);
    put(&hash, 8);
    for (std::uint32_t i = 0; i < merges; ++i) {
        const std::uint32_t merge = pairs[i][0] | pairs[i][1] << 16;
        put(&merge, 4);
    }
    return out;
}

/// Writes a weights-only checkpoint (`moments`: with the optimiser's moments, zero) and returns its
/// path. Norms lie around 1, every matrix has the deviation 1/sqrt(columns). head_dim is width /
/// heads.
inline std::string write_random_checkpoint(const std::string& path, const ModelConfig& config,
                                           std::uint64_t seed, bool moments = false) {
    if (config.head_dim * config.heads != config.width || !config.tied_head)
        throw std::runtime_error("a checkpoint has head_dim = width / heads and a tied head");
    const std::uint64_t parameters = config.parameters();
    std::vector<std::byte> bytes(4096 + (moments ? 12 : 4) * parameters);
    const std::uint64_t fields[] = {config.layers, config.width, config.heads,   config.kv_heads,
                                    config.ffn,    config.vocab, config.context, parameters};
    std::memcpy(bytes.data(), "MNCKPT01", 8);
    std::memcpy(bytes.data() + 8, fields, sizeof fields);
    Random random(seed);
    std::byte* at = bytes.data() + 4096;
    for (const PlannedTensor& tensor : standard_tensors(config, codec(WeightType::f32)))
        for (std::uint64_t i = 0; i < tensor.rows * tensor.cols; ++i, at += 4) {
            const float spread = 1.0f / std::sqrt(static_cast<float>(tensor.cols));
            const float w =
                tensor.rows == 1 ? 1.0f + 0.1f * random.normal() : spread * random.normal();
            std::memcpy(at, &w, 4);
        }
    write_bytes(path, bytes);
    return path;
}

/// Rows of the source decoded and encoded again, one call at a time. The source must outlive it.
inline EncodeRows encode_from(const ModelFile& source, const WritePlan& plan,
                              const EncodeOptions& options = {}) {
    return [&source, &plan, options](std::size_t index, std::uint64_t row, std::uint64_t rows,
                                     std::byte* data, std::byte* scales) -> Result<void> {
        const PlannedTensor& target = plan.tensors[index];
        const TensorView* from = source.find(target.source);
        if (from == nullptr || from->cols != target.cols ||
            target.source_row + row + rows > from->rows)
            return Error{"no such rows: " + target.source};
        const std::uint64_t first = target.source_row + row;
        std::vector<float> values(rows * target.cols);
        from->codec->decode(from->data + first * from->codec->data_row_bytes(target.cols),
                            from->scales != nullptr
                                ? from->scales + first * from->codec->scale_row_bytes(target.cols)
                                : nullptr,
                            rows, target.cols, values.data());
        target.codec->encode(values.data(), rows, target.cols, options, data, scales);
        return {};
    };
}

/// Writes and commits.
inline Result<void> write_model(const std::string& path, std::string_view format,
                                const ModelFile& source, const WritePlan& plan,
                                const EncodeOptions& options = {}) {
    MNM_TRY(AtomicFile out, AtomicFile::create(path));
    MNM_CHECK(find_format(format)->write(out, plan, encode_from(source, plan, options)));
    return out.commit();
}

/// A whole model in one matrix type, details included.
inline Result<void> write_model(const std::string& path, std::string_view format,
                                const ModelFile& source, const Codec& matrices,
                                const EncodeOptions& options = {}) {
    const WritePlan plan{source.details, standard_tensors(source.details.config, matrices)};
    return write_model(path, format, source, plan, options);
}

} // namespace mnm::tests

// SPDX-License-Identifier: MIT
// Rows of the source, decoded and encoded in parallel, written in file order and read back.
#include "engine/convert.h"

#include "engine/src/finite.h"
#include "kernels/kernels.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

namespace mnm {
namespace {

/// Hashes of a tensor's two planes as they were handed to the writer.
struct PlaneHashes {
    PlaneHashes() : data(XXH64_createState()), scales(XXH64_createState()) {
        XXH64_reset(data, 0);
        XXH64_reset(scales, 0);
    }
    PlaneHashes(PlaneHashes&& other) noexcept : data(other.data), scales(other.scales) {
        other.data = other.scales = nullptr;
    }
    PlaneHashes& operator=(PlaneHashes&&) = delete;
    ~PlaneHashes() {
        XXH64_freeState(data);
        XXH64_freeState(scales);
    }
    XXH64_state_t* data;
    XXH64_state_t* scales;
};

class Converter {
  public:
    Converter(const ModelFile& source, const WritePlan& plan, const ConvertOptions& options,
              Parallel& parallel)
        : source_(source), plan_(plan), options_(options), parallel_(parallel),
          encode_options_(options.encode), hashes_(plan.tensors.size()) {
        if (encode_options_.search == nullptr) encode_options_.search = kernels::best().fit_q4;
        for (const PlannedTensor& tensor : plan.tensors)
            total_ += tensor.rows * tensor.cols;
    }

    Result<void> check() const {
        for (const PlannedTensor& planned : plan_.tensors) {
            const TensorView* from = source_.find(planned.source);
            if (from == nullptr) {
                return Error{fmt::format("{}: tensor {} is missing, expected for {}",
                                         source_.path(), planned.source, planned.name)};
            }
            if (from->cols != planned.cols || planned.source_row > from->rows ||
                planned.rows > from->rows - planned.source_row) {
                return Error{
                    fmt::format("{}: tensor {} is {} x {}; expected {} columns and rows {} to {}",
                                source_.path(), from->name, from->rows, from->cols, planned.cols,
                                planned.source_row, planned.source_row + planned.rows)};
            }
            const WeightType type = from->codec->type;
            if (type != planned.codec->type && type != WeightType::f32 && type != WeightType::f16) {
                return Error{fmt::format(
                    "{}: tensor {} is already quantised to {}; expected an f32 "
                    "source to make {}",
                    source_.path(), from->name, from->codec->name, planned.codec->name)};
            }
            if (planned.cols % planned.codec->column_step != 0) {
                return Error{fmt::format("{}: tensor {} has {} columns; {} needs a multiple of {}",
                                         source_.path(), from->name, planned.cols,
                                         planned.codec->name, planned.codec->column_step)};
            }
        }
        return {};
    }

    /// Damaged weights would come out with a checksum of their own, as good as any.
    Result<void> verify() const {
        for (const TensorView& tensor : source_.tensors) {
            MNM_CHECK(verify_tensor(source_, tensor));
            if (!tensor.checksum) continue;
            const Codec& codec = *tensor.codec;
            release(*source_.mapping, tensor.data, tensor.rows * codec.data_row_bytes(tensor.cols));
        }
        return {};
    }

    /// What the writer calls.
    Result<void> encode(std::size_t index, std::uint64_t row, std::uint64_t rows, std::byte* data,
                        std::byte* scales) {
        const PlannedTensor& planned = plan_.tensors[index];
        const TensorView& from = *source_.find(planned.source);
        const Codec& to = *planned.codec;
        const std::size_t data_bytes = to.data_row_bytes(planned.cols);
        const std::size_t scale_bytes = to.scale_row_bytes(planned.cols);
        const std::uint64_t first = planned.source_row + row;
        std::atomic<std::uint64_t> bad_row = std::numeric_limits<std::uint64_t>::max();

        parallel_.for_ranges(rows, 8, [&](std::size_t begin, std::size_t end, unsigned) {
            if (from.codec->type == to.type && to.type != WeightType::f32) {
                std::memcpy(data + begin * data_bytes, from.data + (first + begin) * data_bytes,
                            (end - begin) * data_bytes);
                if (scale_bytes > 0) {
                    std::memcpy(scales + begin * scale_bytes,
                                from.scales + (first + begin) * scale_bytes,
                                (end - begin) * scale_bytes);
                }
                return;
            }
            std::vector<float> decoded(from.codec->type == WeightType::f32 ? 0 : planned.cols);
            for (std::size_t r = begin; r < end; ++r) {
                const std::byte* stored =
                    from.data + (first + r) * from.codec->data_row_bytes(planned.cols);
                const auto* values = reinterpret_cast<const float*>(stored);
                if (!decoded.empty()) {
                    from.codec->decode(stored, nullptr, 1, planned.cols, decoded.data());
                    values = decoded.data();
                }
                if (!all_within(values, planned.cols, largest_weight(to.type))) {
                    std::uint64_t seen = bad_row.load();
                    while (first + r < seen && !bad_row.compare_exchange_weak(seen, first + r)) {
                    }
                    return;
                }
                to.encode(values, 1, planned.cols, encode_options_, data + r * data_bytes,
                          scale_bytes == 0 ? nullptr : scales + r * scale_bytes);
            }
        });
        if (bad_row != std::numeric_limits<std::uint64_t>::max()) {
            return Error{fmt::format("{}: tensor {} row {} holds a weight that is not finite or "
                                     "beyond {}, the most {} can hold (did the training diverge?)",
                                     source_.path(), from.name, bad_row.load(),
                                     largest_weight(to.type), to.name)};
        }
        XXH64_update(hashes_[index].data, data, rows * data_bytes);
        if (scale_bytes > 0) XXH64_update(hashes_[index].scales, scales, rows * scale_bytes);
        const std::size_t source_bytes = from.codec->data_row_bytes(planned.cols);
        release(*source_.mapping, from.data + first * source_bytes, rows * source_bytes);
        done_ += rows * planned.cols;
        if (options_.progress) options_.progress(done_, total_);
        return {};
    }

    /// Compares what the disk holds with what was encoded.
    Result<void> read_back(const Format& format, const AtomicFile& out) const {
        MNM_TRY(auto mapping, MappedFile::open(out.temporary_path()));
        MNM_TRY(std::vector<TensorView> stored, format.list(mapping));
        if (stored.size() != plan_.tensors.size()) {
            return Error{fmt::format("{}: {} tensors read back, {} were written", out.path(),
                                     stored.size(), plan_.tensors.size())};
        }
        for (std::size_t i = 0; i < stored.size(); ++i) {
            const PlannedTensor& planned = plan_.tensors[i];
            const TensorView& tensor = stored[i];
            const std::size_t data = tensor.rows * tensor.codec->data_row_bytes(tensor.cols);
            const std::size_t scales = tensor.rows * tensor.codec->scale_row_bytes(tensor.cols);
            const bool same =
                tensor.name == planned.name && tensor.codec == planned.codec &&
                tensor.rows == planned.rows && tensor.cols == planned.cols &&
                XXH64(tensor.data, data, 0) == XXH64_digest(hashes_[i].data) &&
                (scales == 0 || XXH64(tensor.scales, scales, 0) == XXH64_digest(hashes_[i].scales));
            release(*mapping, tensor.data, data);
            if (!same) {
                return Error{
                    fmt::format("{}: tensor {} reads back otherwise than it was written; the "
                                "disk or the memory is at fault, nothing was kept",
                                out.path(), planned.name)};
            }
        }
        return {};
    }

    std::uint64_t weights() const { return total_; }

  private:
    /// Memory stays small, however large the model.
    static void release(const MappedFile& file, const std::byte* begin, std::size_t size) {
        file.release(static_cast<std::size_t>(begin - file.bytes().data()), size);
    }

    const ModelFile& source_;
    const WritePlan& plan_;
    const ConvertOptions& options_;
    Parallel& parallel_;
    EncodeOptions encode_options_;
    std::vector<PlaneHashes> hashes_;
    std::uint64_t done_ = 0;
    std::uint64_t total_ = 0;
};

/// An error that names the unfinished file, of which nobody has heard, names the target.
Error of_target(Error error, const AtomicFile& out) {
    const std::string& unfinished = out.temporary_path();
    if (error.message.starts_with(unfinished))
        error.message.replace(0, unfinished.size(), out.path());
    return error;
}

} // namespace

/// Half-precision numbers end at 65504.
float largest_weight(WeightType type) {
    switch (type) {
    case WeightType::f16:
        return 65504.0f;
    case WeightType::q8_0:
        return 127 * 65504.0f;
    case WeightType::q4_0:
        return 7 * 65504.0f;
    default:
        return std::numeric_limits<float>::max();
    }
}

Result<ConvertReport> convert(const ModelFile& source, const WritePlan& plan, const Format& format,
                              const std::string& path, const ConvertOptions& options,
                              Parallel& parallel) {
    const auto began = std::chrono::steady_clock::now();
    if (same_file(source.path(), path)) {
        return Error{
            fmt::format("{}: is also the input; choose another name for the output", path)};
    }
    if (format.write == nullptr) {
        return Error{fmt::format("{}: the format {} is read only", path, format.name)};
    }
    Converter converter(source, plan, options, parallel);
    MNM_CHECK(converter.check());
    MNM_CHECK(converter.verify());
    MNM_TRY(AtomicFile out, AtomicFile::create(path));
    MNM_CHECK(format.write(
        out, plan,
        [&](std::size_t tensor, std::uint64_t row, std::uint64_t rows, std::byte* data,
            std::byte* scales) { return converter.encode(tensor, row, rows, data, scales); }));
    MNM_CHECK(out.flush());
    // A pipe or a device cannot be read back.
    if (out.temporary_path() != out.path()) {
        Result<void> same = converter.read_back(format, out);
        if (!same) return of_target(same.error(), out);
    }
    MNM_CHECK(source.mapping->check_unchanged());

    ConvertReport report;
    report.parameters = source.details.config.parameters();
    report.bytes = out.size();
    for (const PlannedTensor& tensor : plan.tensors) {
        const std::uint64_t row_bytes =
            tensor.codec->data_row_bytes(tensor.cols) + tensor.codec->scale_row_bytes(tensor.cols);
        report.tensors.push_back({tensor.name, std::string(tensor.codec->name), tensor.rows,
                                  tensor.cols, tensor.rows * row_bytes});
        if (tensor.rows > 1)
            report.nominal_bits = std::max(report.nominal_bits, tensor.codec->nominal_bits);
    }
    report.bits_per_weight =
        8 * static_cast<double>(report.bytes) / static_cast<double>(report.parameters);
    MNM_CHECK(out.commit());
    report.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    return report;
}

} // namespace mnm

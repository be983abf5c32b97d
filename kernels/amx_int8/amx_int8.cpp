// SPDX-License-Identifier: MIT
// AMX-INT8: a prompt's integer dots by tiles, sixteen tokens by sixteen rows by one group; for
// fewer tokens the level below. Tiles cannot multiply floats by the group, so each group's sums go
// through memory and are added there in the fixed order while the tiles multiply the next ones.
#include "kernels/amx_int8/tile_registers.h"
#include "kernels/avx512_vnni/panels.h"

namespace mnm::kernels {
namespace {

constexpr size_t tile_tokens = 16;

// Tiles 0 and 1 take turns with sums, 2 and 3 with activations, 4 and 5 with weights.
constexpr int sums_tile = 0, input_tile = 2, weights_tile = 4;

/// The level below, for less than a tile of tokens.
decltype(Kernels::matmul_q8) few_q8;
decltype(Kernels::matmul_q4) few_q4;

TileShapes shapes_of_a_group() noexcept {
    TileShapes shapes;
    for (int turn = 0; turn < 2; ++turn) {
        shapes.rows[sums_tile + turn] = tile_tokens;
        shapes.row_bytes[sums_tile + turn] = 64;
        shapes.rows[input_tile + turn] = tile_tokens;
        shapes.row_bytes[input_tile + turn] = group;
        shapes.rows[weights_tile + turn] = group / 4;
        shapes.row_bytes[weights_tile + turn] = 64;
    }
    return shapes;
}

template <size_t Token>
struct Index {
    static constexpr size_t value = Token;
};

/// f(Index<0>{}) to f(Index<15>{}): GCC keeps an array in registers only where its indices are
/// constants from the start.
template <size_t Token = 0, class F>
[[gnu::always_inline]] inline void each_token(const F& f) noexcept {
    if constexpr (Token < tile_tokens) {
        f(Index<Token>{});
        each_token<Token + 1>(f);
    }
}

/// Adds a group's sums of sixteen rows to those of each token.
template <bool Q4>
[[gnu::always_inline]] inline void add_group(const int32_t (*sums)[16], const float* scales,
                                             const float* xscale, size_t groups,
                                             __m512 (&acc)[tile_tokens]) noexcept {
    const __m512 weight_scales = Q4 ? _mm512_load_ps(scales) : __m512{};
    each_token([&](auto t) __attribute__((always_inline)) {
        __m512 factor = _mm512_set1_ps(xscale[t.value * groups]);
        if (Q4) factor = _mm512_mul_ps(weight_scales, factor);
        const __m512 dot = _mm512_cvtepi32_ps(_mm512_load_si512(sums[t.value]));
        acc[t.value] = _mm512_fmadd_ps(dot, factor, acc[t.value]);
    });
}

/// Sixteen tokens from `token` on by the sixteen rows of a panel; the first `skip` are not written.
template <bool Q4>
void tile(const __m512i* panel, const float* scales, const QuantizedRows& x, size_t token,
          size_t skip, float* y, size_t stride, bool accumulate, size_t rows) noexcept {
    const size_t groups = x.cols / group;
    const int8_t* input = x.q + token * x.cols;
    const float* xscale = x.scale + token * groups;
    alignas(64) int32_t sums[2][tile_tokens][16];
    __m512 acc[tile_tokens];
    each_token([&](auto t) __attribute__((always_inline)) { acc[t.value] = _mm512_setzero_ps(); });

    const auto multiply_even = [&](size_t g) __attribute__((always_inline)) {
        tile_zero<sums_tile>();
        tile_load<input_tile>(input + g * group, x.cols);
        tile_load<weights_tile>(panel + g * 8, 64);
        tile_dot<sums_tile, input_tile, weights_tile>();
    };
    const auto multiply_odd = [&](size_t g) __attribute__((always_inline)) {
        tile_zero<sums_tile + 1>();
        tile_load<input_tile + 1>(input + g * group, x.cols);
        tile_load<weights_tile + 1>(panel + g * 8, 64);
        tile_dot<sums_tile + 1, input_tile + 1, weights_tile + 1>();
    };
    const auto add_even = [&](size_t g) __attribute__((always_inline)) {
        add_group<Q4>(sums[0], scales + g * 16, xscale + g, groups, acc);
    };
    const auto add_odd = [&](size_t g) __attribute__((always_inline)) {
        add_group<Q4>(sums[1], scales + g * 16, xscale + g, groups, acc);
    };

    // While a group is multiplied, the sums of the one before are stored and those of the one
    // before that are added.
    multiply_even(0);
    if (groups > 1) multiply_odd(1);
    tile_store<sums_tile>(sums[0], 64);
    size_t g = 2;
    for (; g + 1 < groups; g += 2) {
        multiply_even(g);
        tile_store<sums_tile + 1>(sums[1], 64);
        add_even(g - 2);
        multiply_odd(g + 1);
        tile_store<sums_tile>(sums[0], 64);
        add_odd(g - 1);
    }
    add_even(g - 2);
    if (g - 1 < groups) {
        tile_store<sums_tile + 1>(sums[1], 64);
        add_odd(g - 1);
    }
    if (g < groups) {
        multiply_even(g);
        tile_store<sums_tile>(sums[0], 64);
        add_even(g);
    }

    each_token([&](auto t) __attribute__((always_inline)) {
        if (t.value < skip) return;
        __m512 value = acc[t.value];
        if (!Q4) value = _mm512_mul_ps(value, _mm512_load_ps(scales));
        put(y + (token + t.value) * stride, value, rows, accumulate);
    });
}

/// Both panels by all tokens, sixteen at a time; the last sixteen may hold some that are done.
template <bool Q4>
void multiply(const Panels& panels, const QuantizedRows& x, const Target& target, size_t row,
              size_t rows) noexcept {
    for (size_t done = 0; done < x.count; done += tile_tokens) {
        const size_t token = done + tile_tokens <= x.count ? done : x.count - tile_tokens;
        for (size_t b = 0; 16 * b < rows; ++b) {
            tile<Q4>(panels.bytes[b], panels.scales[b], x, token, done - token,
                     target.y + row + 16 * b, target.stride, target.add, rows - 16 * b);
        }
    }
}

/// Rows [begin, end), packed by pack(row, rows, panels, block).
template <bool Q4, class Pack>
void multiply_rows(size_t begin, size_t end, const QuantizedRows& x, const Target& target,
                   void* scratch, const Pack& pack) noexcept {
    const Panels panels = panels_in(scratch, x.cols);
    tile_shapes(shapes_of_a_group());
    each_panel_pair(
        begin, end, [&](size_t row, size_t rows, size_t block) { pack(row, rows, panels, block); },
        [&](size_t row, size_t rows) { multiply<Q4>(panels, x, target, row, rows); });
    tile_release();
}

void matmul_q8(const int8_t* w, const float* scale, size_t begin, size_t end,
               const QuantizedRows& x, const Target& target, void* scratch) noexcept {
    if (x.count < tile_tokens) {
        few_q8(w, scale, begin, end, x, target, scratch);
        return;
    }
    multiply_rows<false>(begin, end, x, target, scratch,
                         [&](size_t row, size_t rows, const Panels& panels, size_t block) {
                             pack_q8<true>(w, scale, row, rows, x.cols, panels, block);
                         });
}

void matmul_q4(const uint8_t* w, const float* scale, size_t begin, size_t end,
               const QuantizedRows& x, const Target& target, void* scratch) noexcept {
    if (x.count < tile_tokens) {
        few_q4(w, scale, begin, end, x, target, scratch);
        return;
    }
    multiply_rows<true>(begin, end, x, target, scratch,
                        [&](size_t row, size_t rows, const Panels& panels, size_t block) {
                            pack_q4<true>(w, scale, row, rows, x.cols, panels, block);
                        });
}

uint64_t dot_loop(uint64_t count) noexcept {
    TileShapes shapes;
    for (size_t tile = 0; tile < 8; ++tile) {
        shapes.rows[tile] = 16;
        shapes.row_bytes[tile] = 64;
    }
    tile_shapes(shapes);
    alignas(64) const int8_t ones[16][64] = {{1}};
    tile_load<6>(ones, 64);
    tile_load<7>(ones, 64);
    uint64_t done = 0;
    for (; done < count; done += 4 * 16 * 16 * 64) {
        tile_dot<0, 6, 7>();
        tile_dot<1, 6, 7>();
        tile_dot<2, 6, 7>();
        tile_dot<3, 6, 7>();
    }
    tile_release();
    return done;
}

} // namespace

void install_amx_int8(Kernels& table) noexcept;
void install_amx_int8(Kernels& table) noexcept {
    few_q8 = table.matmul_q8;
    few_q4 = table.matmul_q4;
    table.matmul_q8 = matmul_q8;
    table.matmul_q4 = matmul_q4;
    table.dot_loop = dot_loop;
}

} // namespace mnm::kernels

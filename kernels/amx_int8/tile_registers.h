// SPDX-License-Identifier: MIT
// AMX's instructions on its eight tiles, each up to 16 rows of 64 bytes. Written out because GCC
// 12's intrinsics do not say that they read memory, so that what was stored before could come
// after.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

namespace mnm::kernels {
namespace {

/// How many rows and bytes a row each tile has, as LDTILECFG reads it.
struct alignas(64) TileShapes {
    uint8_t palette = 1;
    uint8_t start_row = 0;
    uint8_t reserved[14] = {};
    uint16_t row_bytes[16] = {};
    uint8_t rows[16] = {};
};

#ifdef MNM_EMULATE_TILES // tests run this level's code on processors without tiles

struct Tiles {
    TileShapes shapes;
    uint8_t bytes[8][16][64];
};
thread_local Tiles tiles_now;

void tile_shapes(const TileShapes& shapes) noexcept {
    tiles_now = Tiles{shapes, {}};
}
void tile_release() noexcept {
    tile_shapes(TileShapes{});
}
template <int Tile>
void tile_zero() noexcept {
    memset(tiles_now.bytes[Tile], 0, sizeof tiles_now.bytes[Tile]);
}
template <int Tile>
void tile_load(const void* p, size_t stride) noexcept {
    tile_zero<Tile>();
    for (size_t r = 0; r < tiles_now.shapes.rows[Tile]; ++r)
        memcpy(tiles_now.bytes[Tile][r], static_cast<const uint8_t*>(p) + r * stride,
               tiles_now.shapes.row_bytes[Tile]);
}
template <int Tile>
void tile_store(void* p, size_t stride) noexcept {
    for (size_t r = 0; r < tiles_now.shapes.rows[Tile]; ++r)
        memcpy(static_cast<uint8_t*>(p) + r * stride, tiles_now.bytes[Tile][r],
               tiles_now.shapes.row_bytes[Tile]);
}
template <int C, int A, int B>
void tile_dot() noexcept {
    for (size_t m = 0; m < tiles_now.shapes.rows[C]; ++m) {
        for (size_t n = 0; n < tiles_now.shapes.row_bytes[C] / 4; ++n) {
            int32_t sum;
            memcpy(&sum, tiles_now.bytes[C][m] + 4 * n, 4);
            for (size_t k = 0; k < tiles_now.shapes.row_bytes[A]; ++k)
                sum += static_cast<int8_t>(tiles_now.bytes[A][m][k]) *
                       static_cast<int8_t>(tiles_now.bytes[B][k / 4][4 * n + k % 4]);
            memcpy(tiles_now.bytes[C][m] + 4 * n, &sum, 4);
        }
    }
}

#else

void tile_shapes(const TileShapes& shapes) noexcept {
    __asm__ volatile("ldtilecfg %0" : : "m"(shapes));
}
/// Back to the state that costs a switch of threads nothing.
void tile_release() noexcept {
    __asm__ volatile("tilerelease" : : : "memory");
}
template <int Tile>
void tile_zero() noexcept {
    __asm__ volatile("tilezero %%tmm%c0" : : "i"(Tile));
}
template <int Tile>
void tile_load(const void* p, size_t stride) noexcept {
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm%c2" : : "r"(p), "r"(stride), "i"(Tile) : "memory");
}
template <int Tile>
void tile_store(void* p, size_t stride) noexcept {
    __asm__ volatile("tilestored %%tmm%c2, (%0,%1,1)"
                     :
                     : "r"(p), "r"(stride), "i"(Tile)
                     : "memory");
}
/// C += A times B, signed bytes: row m of A with the four rows' numbers for column n that stand
/// together in each row of B.
template <int C, int A, int B>
void tile_dot() noexcept {
    __asm__ volatile("tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(C), "i"(A), "i"(B));
}

#endif

} // namespace
} // namespace mnm::kernels

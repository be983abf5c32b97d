// SPDX-License-Identifier: MIT
// Writes a checkpoint of random weights in a given shape, for benchmarks:
//   random_checkpoint OUT.ckpt LAYERS WIDTH HEADS KV_HEADS FFN VOCAB CONTEXT
#include "tests/formats/synthetic.h"

#include <cstdio>
#include <cstdlib>

int main(int argc, char** argv) {
    if (argc != 9) {
        std::fprintf(stderr, "usage: %s OUT.ckpt LAYERS WIDTH HEADS KV_HEADS FFN VOCAB CONTEXT\n",
                     argv[0]);
        return 2;
    }
    std::uint64_t n[7];
    for (int i = 0; i < 7; ++i)
        n[i] = std::strtoull(argv[2 + i], nullptr, 10);
    mnm::ModelConfig config;
    config.layers = n[0];
    config.width = n[1];
    config.heads = n[2];
    config.kv_heads = n[3];
    config.head_dim = n[2] == 0 ? 0 : n[1] / n[2];
    config.ffn = n[4];
    config.vocab = n[5];
    config.context = n[6];
    if (auto checked = config.check(argv[1]); !checked) {
        std::fprintf(stderr, "random_checkpoint: error: %s\n", checked.error().message.c_str());
        return 1;
    }
    mnm::tests::write_random_checkpoint(argv[1], config, 1);
    std::printf("%s: %llu parameters\n", argv[1],
                static_cast<unsigned long long>(config.parameters()));
}

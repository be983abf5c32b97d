// SPDX-License-Identifier: MIT
// Reading and checking `.tok` files.
#include "formats/token_stream.h"

#include "formats/src/bytes.h"
#include "formats/src/formats.h"

#include <fmt/format.h>

namespace mnm {

namespace {

constexpr std::string_view stream_magic = "MNTOKEN1";
constexpr std::uint64_t stream_header_size = 64;
constexpr std::uint64_t chat_flag = 1;

} // namespace

bool TokenStream::probe(std::span<const std::byte> file) {
    return starts_with(file, stream_magic);
}

Result<TokenStream> TokenStream::open(const std::string& path) {
    TokenStream stream;
    MNM_TRY(stream.mapping, MappedFile::open(path));
    const std::span<const std::byte> bytes = stream.mapping->bytes();
    if (!probe(bytes))
        return Error{
            fmt::format("{}: not a token stream: it does not begin with {}", path, stream_magic)};
    if (bytes.size() < stream_header_size)
        return Error{fmt::format("{}: the file has {} bytes, expected at least {} for the header "
                                 "of a token stream",
                                 path, bytes.size(), stream_header_size)};
    const std::uint64_t count = load<std::uint64_t>(bytes, 8);
    stream.documents = load<std::uint64_t>(bytes, 16);
    stream.vocab = load<std::uint64_t>(bytes, 24);
    stream.tokenizer_hash = load<std::uint64_t>(bytes, 32);
    const std::uint64_t flags = load<std::uint64_t>(bytes, 40);
    stream.block = load<std::uint64_t>(bytes, 48);

    if (flags > chat_flag)
        return Error{fmt::format("{}: flags are {:#x}, expected 0 or 1 (chat)", path, flags)};
    stream.chat = flags == chat_flag;
    // In a chat file the top bit of a token is not part of its id.
    const std::uint64_t id_limit = stream.chat ? 32768 : 65536;
    if (stream.vocab == 0 || stream.vocab > id_limit)
        return Error{
            fmt::format("{}: vocab is {}, expected 1 to {}", path, stream.vocab, id_limit)};
    const std::uint64_t body = bytes.size() - stream_header_size;
    if (count > body / 2)
        return Error{fmt::format("{}: the header announces {} tokens, the file holds {}", path,
                                 count, body / 2)};
    if (body != 2 * count)
        return Error{fmt::format("{}: {} bytes follow the {} tokens of the header, expected none",
                                 path, body - 2 * count, count)};
    stream.tokens = {reinterpret_cast<const std::uint16_t*>(bytes.data() + stream_header_size),
                     static_cast<std::size_t>(count)};
    const unsigned mask = stream.chat ? 0xffffu & ~unsigned{target_bit} : 0xffffu;
    for (std::size_t i = 0; i < stream.tokens.size(); ++i)
        if ((stream.tokens[i] & mask) >= stream.vocab)
            return Error{fmt::format("{}: token {} has id {}, expected less than vocab, {}", path,
                                     i, stream.tokens[i] & mask, stream.vocab)};
    return stream;
}

} // namespace mnm

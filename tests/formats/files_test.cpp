// SPDX-License-Identifier: MIT
// Mapped files, and files that appear whole or not at all.
#include "tests/formats/synthetic.h"

#include "formats/src/unicode.h"

#include <boost/test/unit_test.hpp>

#ifndef _WIN32
#include <sys/stat.h>
#include <unistd.h>
#endif

using namespace mnm;
using namespace mnm::tests;

BOOST_AUTO_TEST_SUITE(files_test)

namespace {

std::span<const std::byte> text(std::string_view s) {
    return std::as_bytes(std::span<const char>(s.data(), s.size()));
}

std::string content(const std::string& path) {
    const std::vector<std::byte> bytes = read_bytes(path);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

Result<void> put(const std::string& path, std::string_view what) {
    MNM_TRY(AtomicFile file, AtomicFile::create(path));
    MNM_CHECK(file.write(text(what)));
    return file.commit();
}

bool says(const Error& error, std::string_view what) {
    BOOST_TEST_INFO(error.message);
    return error.message.find(what) != std::string::npos;
}

} // namespace

BOOST_AUTO_TEST_CASE(maps_what_is_there) {
    const TempFolder folder;
    write_bytes(folder / "a", text("hello"));
    const auto file = MappedFile::open(folder / "a");
    BOOST_REQUIRE(file);
    const std::span<const std::byte> bytes = (*file)->bytes();
    BOOST_TEST(bytes.size() == 5u);
    std::filesystem::remove(folder / "a");
    BOOST_TEST(static_cast<char>(bytes[4]) == 'o');
    (*file)->prefetch(0, 5);
    (*file)->prefetch(4, SIZE_MAX);
    (*file)->prefetch(100, 1);
}

BOOST_AUTO_TEST_CASE(refuses_to_map) {
    const TempFolder folder;
    const std::string path = folder.path().string();
    BOOST_TEST(says(MappedFile::open(path).error(), path));
    BOOST_TEST(says(MappedFile::open(path).error(), "is a directory"));
    BOOST_TEST(says(MappedFile::open(folder / "none").error(), "none"));
    write_bytes(folder / "empty", {});
    BOOST_TEST(says(MappedFile::open(folder / "empty").error(), "empty"));
#ifndef _WIN32
    BOOST_TEST(says(MappedFile::open("/dev/null").error(), "a pipe or a device"));
    BOOST_REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
    BOOST_TEST(says(MappedFile::open(folder / "pipe").error(), "a pipe or a device"));
#endif
}

BOOST_AUTO_TEST_CASE(appears_whole_or_not_at_all) {
    const TempFolder folder;
    const std::string path = folder / "model";
    BOOST_REQUIRE(put(path, "old"));
    {
        auto file = AtomicFile::create(path);
        BOOST_REQUIRE(file);
        BOOST_REQUIRE(file->write(text("new, unfinished")));
        BOOST_REQUIRE(file->flush());
        BOOST_TEST(content(file->temporary_path()) == "new, unfinished");
        BOOST_TEST(content(path) == "old");
        BOOST_TEST(folder.list().size() == 2u);
        AtomicFile moved = std::move(*file);
        BOOST_TEST(moved.size() == 15u);
    }
    BOOST_TEST(folder.list() == std::vector<std::string>{"model"});
    BOOST_TEST(content(path) == "old");

    auto file = AtomicFile::create(path);
    BOOST_REQUIRE(file->write(text("new")));
    BOOST_REQUIRE(file->write_zeros(5000));
    BOOST_REQUIRE(file->commit());
    BOOST_TEST(file->size() == 5003u);
    BOOST_TEST(content(path) == "new" + std::string(5000, '\0'));
    BOOST_TEST(folder.list() == std::vector<std::string>{"model"});
}

BOOST_AUTO_TEST_CASE(pieces_of_any_size_follow_each_other) {
    constexpr std::size_t piece = std::size_t{2} << 20; // what is handed to the system at once
    const TempFolder folder;
    auto file = AtomicFile::create(folder / "x");
    BOOST_REQUIRE(file);
    std::string expected;
    for (const std::size_t size : {std::size_t{1}, piece - 1, piece, piece + 1, 3 * piece,
                                   std::size_t{5}, 2 * piece - 6, std::size_t{0}, 2 * piece}) {
        std::string part(size, '\0');
        for (std::size_t i = 0; i < size; ++i)
            part[i] = static_cast<char>((expected.size() + i) % 251);
        BOOST_REQUIRE(file->write(text(part)));
        expected += part;
        if (size == 5) BOOST_REQUIRE(file->flush());
        if (size == 5) BOOST_TEST((content(file->temporary_path()) == expected));
        BOOST_TEST(file->size() == expected.size());
    }
    BOOST_REQUIRE(file->commit());
    BOOST_TEST((content(folder / "x") == expected));
}

BOOST_AUTO_TEST_CASE(two_writers_do_not_meet) {
    const TempFolder folder;
    auto a = AtomicFile::create(folder / "x");
    auto b = AtomicFile::create(folder / "x");
    BOOST_REQUIRE((a && b));
    BOOST_TEST(a->temporary_path() != b->temporary_path());
    BOOST_REQUIRE(a->write(text("a")));
    BOOST_REQUIRE(b->write(text("b")));
    BOOST_REQUIRE(b->commit());
    BOOST_REQUIRE(a->commit());
    BOOST_TEST(content(folder / "x") == "a");
    BOOST_TEST(folder.list().size() == 1u);
}

BOOST_AUTO_TEST_CASE(refuses_bad_targets) {
    const TempFolder folder;
    BOOST_TEST(says(AtomicFile::create(folder.path().string()).error(), "is a directory"));
    BOOST_TEST(says(AtomicFile::create(folder / "no/file").error(), "does not exist"));
    BOOST_TEST(says(AtomicFile::create(folder / "no/file").error(), "no/file"));
    BOOST_TEST(!AtomicFile::create(folder / "no/"));
    BOOST_TEST(!AtomicFile::create(""));
    BOOST_TEST(folder.list().empty());
}

BOOST_AUTO_TEST_CASE(interrupted_runs_leave_nothing) {
    const TempFolder folder;
    auto file = AtomicFile::create(folder / "x");
    auto other = AtomicFile::create(folder / "y");
    BOOST_REQUIRE((file && other));
    BOOST_REQUIRE(other->commit());
    remove_unfinished_files();
#ifdef _WIN32 // where a file goes when its last handle is closed, at the latest with the process
    { const AtomicFile closed = std::move(*file); }
#endif
    BOOST_TEST(folder.list() == std::vector<std::string>{"y"});
    remove_unfinished_files();
}

BOOST_AUTO_TEST_CASE(more_files_than_slots) {
    const TempFolder folder;
    {
        std::vector<AtomicFile> files;
        for (int i = 0; i < 100; ++i) {
            auto file = AtomicFile::create(folder / std::to_string(i));
            BOOST_REQUIRE(file);
            files.push_back(std::move(*file));
        }
        BOOST_TEST(folder.list().size() == 100u);
    }
    BOOST_TEST(folder.list().empty());
}

BOOST_AUTO_TEST_CASE(names_outside_ascii) {
    const TempFolder folder;
    std::string deep = from_path(folder.path());
    for (int i = 0; i < 6; ++i)
        deep += "/\xd0\x9c\xd0\xbe\xd0\xb4\xd0\xb5\xd0\xbb\xd0\xb8 \xe6\xa8\xa1\xe5\x9e\x8b "
                "\xf0\x9f\x98\x80 and some more letters to make it long";
    std::error_code failed;
    std::filesystem::create_directories(to_path(deep), failed);
    BOOST_REQUIRE(!failed);
    BOOST_REQUIRE(put(deep + "/\xc3\xa9", "text"));
    const auto file = MappedFile::open(deep + "/\xc3\xa9");
    BOOST_REQUIRE(file);
    BOOST_TEST((*file)->bytes().size() == 4u);
    BOOST_TEST(same_file(deep + "/\xc3\xa9", deep + "/./\xc3\xa9"));
}

BOOST_AUTO_TEST_CASE(same_file_follows_links) {
    const TempFolder folder;
    write_bytes(folder / "a", text("a"));
    write_bytes(folder / "b", text("a"));
    BOOST_TEST(same_file(folder / "a", folder / "a"));
    BOOST_TEST(!same_file(folder / "a", folder / "b"));
    BOOST_TEST(!same_file(folder / "a", folder / "none"));
    BOOST_TEST(!same_file(folder / "none", folder / "none"));
#ifndef _WIN32
    std::filesystem::create_symlink("a", folder / "link");
    std::filesystem::create_hard_link(folder / "a", folder / "hard");
    BOOST_TEST(same_file(folder / "link", folder / "a"));
    BOOST_TEST(same_file(folder / "hard", folder / "a"));
#endif
}

BOOST_AUTO_TEST_CASE(utf16_and_back) {
    const std::string all = "a\xc3\xa9\xe6\xbc\xa2\xf0\x9f\x98\x80";
    BOOST_TEST((to_utf16(all) == u"a\u00e9\u6f22\U0001f600"));
    BOOST_TEST(to_utf8(to_utf16(all)) == all);
    for (const char* bad :
         {"\x80", "\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x82", "\xff"})
        BOOST_TEST(!valid_utf8(bad));
    BOOST_TEST(valid_utf8(all));
    BOOST_TEST(printable("a\nb\x1b[0m") == "a?b?[0m");
}

#ifndef _WIN32
BOOST_AUTO_TEST_CASE(special_files_are_written_directly) {
    auto null = AtomicFile::create("/dev/null");
    BOOST_REQUIRE(null);
    BOOST_TEST(null->temporary_path() == null->path());
    BOOST_REQUIRE(null->write(text("gone")));
    BOOST_REQUIRE(null->commit());
    BOOST_TEST(std::filesystem::is_character_file("/dev/null"));

    if (!std::filesystem::exists("/dev/full")) return;
    auto full = AtomicFile::create("/dev/full");
    BOOST_REQUIRE(full);
    BOOST_REQUIRE(full->write(text("x")));
    for (const Result<void>& done : {full->flush(), full->commit(), full->write_zeros(3 << 20)}) {
        BOOST_REQUIRE(!done);
        BOOST_TEST(says(done.error(), "/dev/full: No space left on device after 0 bytes"));
    }
}

BOOST_AUTO_TEST_CASE(links_keep_pointing) {
    const TempFolder folder;
    std::filesystem::create_directory(folder / "store");
    write_bytes(folder / "store/a", text("old"));
    std::filesystem::create_symlink("store/a", folder / "link");
    std::filesystem::create_symlink("link", folder / "second");
    BOOST_REQUIRE(put(folder / "second", "new"));
    BOOST_TEST(std::filesystem::is_symlink(folder / "link"));
    BOOST_TEST(std::filesystem::is_symlink(folder / "second"));
    BOOST_TEST(content(folder / "store/a") == "new");
    std::filesystem::create_symlink("store/later", folder / "dangling");
    BOOST_REQUIRE(put(folder / "dangling", "made"));
    BOOST_TEST(content(folder / "store/later") == "made");
}

BOOST_AUTO_TEST_CASE(modes_follow_umask_and_the_old_file) {
    const TempFolder folder;
    const mode_t before = ::umask(027);
    BOOST_REQUIRE(put(folder / "a", "x"));
    ::umask(before);
    struct stat status {};
    BOOST_REQUIRE(::stat((folder / "a").c_str(), &status) == 0);
    BOOST_TEST((status.st_mode & 0777) == 0640u);
    BOOST_REQUIRE(::chmod((folder / "a").c_str(), 0604) == 0);
    BOOST_REQUIRE(put(folder / "a", "y"));
    BOOST_REQUIRE(::stat((folder / "a").c_str(), &status) == 0);
    BOOST_TEST((status.st_mode & 0777) == 0604u);
}
#endif

BOOST_AUTO_TEST_SUITE_END()

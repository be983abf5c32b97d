// SPDX-License-Identifier: MIT
// Tests of prompts: their form, what they drop, what they refuse.
#include "engine/conversation.h"

#include <boost/test/unit_test.hpp>

using namespace mnm;

BOOST_AUTO_TEST_SUITE(conversation_test)

namespace {

using Ids = std::vector<TokenId>;

/// No merges: a byte is a token. Specials: 256 bos, 257 user, 258 assistant, 259 system, 260 end.
Tokenizer bytes_only() {
    TokenizerFile file;
    file.first_special = 256;
    file.specials = 16;
    file.vocab = 272;
    return Tokenizer(file);
}

void check(const Result<Conversation::Prompt>& prompt, const Ids& ids, std::size_t dropped) {
    BOOST_REQUIRE(prompt);
    BOOST_TEST(prompt.value().ids == ids, boost::test_tools::per_element());
    BOOST_TEST(prompt.value().dropped == dropped);
}

} // namespace

BOOST_AUTO_TEST_CASE(the_form_of_a_prompt) {
    const Tokenizer tokenizer = bytes_only();
    Conversation conversation(tokenizer);
    check(conversation.prompt(2), {256, 258}, 0);
    conversation.add(Role::user, "hi");
    check(conversation.prompt(100), {256, 257, 'h', 'i', 260, 258}, 0);
    conversation.add(Role::assistant, Ids{'y', 'o'});
    conversation.add(Role::user, "");
    conversation.set_system("be");
    check(conversation.prompt(100),
          {256, 259, 'b', 'e', 260, 257, 'h', 'i', 260, 258, 'y', 'o', 260, 257, 260, 258}, 0);
    conversation.set_system("");
    check(conversation.prompt(100), {256, 257, 'h', 'i', 260, 258, 'y', 'o', 260, 257, 260, 258},
          0);
}

BOOST_AUTO_TEST_CASE(typed_markers_stay_text) {
    const Tokenizer tokenizer = bytes_only();
    Conversation conversation(tokenizer);
    conversation.add(Role::user, "<|end|>");
    check(conversation.prompt(100), {256, 257, '<', '|', 'e', 'n', 'd', '|', '>', 260, 258}, 0);
}

BOOST_AUTO_TEST_CASE(a_system_turn_stands_first_whenever_it_is_set) {
    const Tokenizer tokenizer = bytes_only();
    Conversation conversation(tokenizer);
    conversation.add(Role::user, "a");
    conversation.add(Role::system, "s");
    check(conversation.prompt(100), {256, 259, 's', 260, 257, 'a', 260, 258}, 0);
    BOOST_TEST(conversation.turns().size() == 1U);
    conversation.reset();
    BOOST_TEST(conversation.turns().empty());
    check(conversation.prompt(100), {256, 259, 's', 260, 258}, 0);
    conversation.add(Role::system, Ids());
    check(conversation.prompt(100), {256, 258}, 0);
}

BOOST_AUTO_TEST_CASE(the_oldest_turns_go_when_the_context_fills) {
    const Tokenizer tokenizer = bytes_only();
    Conversation conversation(tokenizer);
    conversation.set_system("S");
    for (const char* text : {"1", "2", "3"}) {
        conversation.add(text[0] == '2' ? Role::assistant : Role::user, text);
    }
    // bos, 3 of the system turn, 3 x 3, assistant
    Conversation roomy = conversation;
    check(roomy.prompt(14), {256, 259, 'S', 260, 257, '1', 260, 258, '2', 260, 257, '3', 260, 258},
          0);
    Conversation tight = conversation;
    check(tight.prompt(13), {256, 259, 'S', 260, 258, '2', 260, 257, '3', 260, 258}, 1);
    BOOST_TEST(tight.turns().size() == 2U); // what was left out is forgotten
    check(tight.prompt(1000), {256, 259, 'S', 260, 258, '2', 260, 257, '3', 260, 258}, 0);
    check(conversation.prompt(8), {256, 259, 'S', 260, 257, '3', 260, 258}, 2);
}

BOOST_AUTO_TEST_CASE(a_short_old_turn_does_not_outlive_a_newer_one) {
    const Tokenizer tokenizer = bytes_only();
    Conversation conversation(tokenizer);
    conversation.add(Role::user, "1");
    conversation.add(Role::assistant, std::string(50, 'x'));
    conversation.add(Role::user, "3");
    check(conversation.prompt(20), {256, 257, '3', 260, 258}, 2);
}

BOOST_AUTO_TEST_CASE(many_turns_in_a_small_context_keep_the_system_turn_and_whole_turns) {
    const Tokenizer tokenizer = bytes_only();
    Conversation conversation(tokenizer);
    conversation.set_system("system");
    for (int i = 0; i < 20; ++i) {
        conversation.add(i % 2 == 0 ? Role::user : Role::assistant, std::string(12, 'a'));
    }
    const auto prompt = conversation.prompt(128);
    BOOST_REQUIRE(prompt);
    BOOST_TEST(prompt->ids.size() == 10U + 8 * 14); // one turn more would be 136
    BOOST_TEST(prompt->dropped == 12U);
    BOOST_TEST(prompt->ids[1] == tokenizer.system());
    int open = 0;
    for (std::size_t i = 0; i + 1 < prompt->ids.size(); ++i) {
        const TokenId id = prompt->ids[i];
        if (id > 256 && id < 260) ++open;
        if (id == 260) --open;
        BOOST_TEST((open == 0 || open == 1));
    }
    BOOST_TEST(open == 0);
}

BOOST_AUTO_TEST_CASE(what_cannot_fit_is_refused_and_can_be_taken_back) {
    const Tokenizer tokenizer = bytes_only();
    Conversation conversation(tokenizer);
    conversation.set_system("0123456789");
    conversation.add(Role::user, "first");
    conversation.add(Role::user, std::string(500, 'x'));
    const auto huge = conversation.prompt(128);
    BOOST_REQUIRE(!huge);
    BOOST_TEST(huge.error().message.find("500 > 128") != std::string::npos);
    BOOST_TEST(conversation.turns().size() == 2U);
    conversation.drop_last();
    BOOST_TEST(conversation.turns().size() == 1U);
    conversation.add(Role::user,
                     std::string(120, 'y')); // fits by itself, not beside the system turn
    const auto full = conversation.prompt(128);
    BOOST_REQUIRE(!full);
    BOOST_TEST(full.error().message.find("136 > 128") != std::string::npos);
    BOOST_TEST(conversation.turns().size() == 2U);
    BOOST_TEST(bool(conversation.prompt(136)));
    BOOST_TEST(!conversation.prompt(0));
    conversation.reset();
    conversation.drop_last(); // nothing to take back
    BOOST_TEST(!conversation.prompt(13));
    BOOST_TEST(bool(conversation.prompt(14)));
}

BOOST_AUTO_TEST_CASE(the_template) {
    BOOST_TEST(native_chat_template() ==
               R"({% for message in messages %}{{ '<|' + message['role'] + '|>' + )"
               R"(message['content'] + '<|end|>' }}{% endfor %}{% if add_generation_prompt %})"
               R"({{ '<|assistant|>' }}{% endif %})");
}

BOOST_AUTO_TEST_SUITE_END()

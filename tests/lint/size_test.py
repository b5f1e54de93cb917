"""scripts/check_size.py counts files and functions, and finds functions of every form."""

import unittest

from bad_tree import TreeTest

from cpp_text import functions


class SizeTest(TreeTest):
    def check(self, name, text):
        self.write(name, text)
        return self.run_script("check_size.py", str(self.tree))

    def test_allows_the_limits_and_warns_above_the_aim(self):
        body = "  f();\n" * 58
        status, out = self.check("src/a.cc", f"void F() {{\n{body}}}\n" + "int x;\n" * 440)
        self.assertEqual(status, 0, out)
        self.assertIn("src/a.cc: warning: 500 lines; the aim is 300", out)

    def test_fails_on_a_long_file(self):
        status, out = self.check("include/a.h", "int x;\n" * 501)
        self.assertEqual(status, 1)
        self.assertIn("include/a.h:501: 501 lines; the limit is 500", out)

    def test_fails_on_a_long_function(self):
        body = "  if (a) { b(); }\n" * 59
        status, out = self.check("src/a.cc", f"\nint Net::Run(int a) const {{\n{body}}}\n")
        self.assertEqual(status, 1)
        self.assertIn("src/a.cc:2: function Net::Run has 61 lines; the limit is 60", out)

    def test_fails_on_a_long_python_function(self):
        status, out = self.check("scripts/a.py", "def f():\n" + "    x = 1\n" * 60)
        self.assertEqual(status, 1)
        self.assertIn("scripts/a.py:1: function f has 61 lines", out)

    def test_schemas_have_no_limit(self):
        status, out = self.check("proto/a.proto", "// x\n" * 900)
        self.assertEqual(status, 0, out)


class FunctionFinderTest(unittest.TestCase):
    def names(self, text):
        return [name for _, _, name in functions(text)]

    def test_finds_every_form_of_function(self):
        text = """
namespace trainer {
namespace {
struct Relu { float slope; HD float operator()(float x) const { return x > 0 ? x : slope * x; } };
}
template <class T>
void Wide(const T& x) noexcept {
  for (;;) { }
}
Net::Net(int a) : a_(a), b_(1) {
}
auto Later(int x) -> std::vector<int> {
  auto f = [](int y) { return y; };
}
void BatchQueue::Run(std::stop_token stop) try {
} catch (const Closed&) {
}
TEST(ATest, DoesIt) {
}
}  // namespace
"""
        names = self.names(text)
        for name in ("operator", "Wide", "Net::Net", "Later", "TEST"):
            self.assertIn(name, names)
        self.assertNotIn("f", names)
        self.assertNotIn("for", names)

    def test_counts_from_the_head_to_the_closing_brace(self):
        self.assertEqual(functions("\n\nvoid F(int a,\n       int b) {\n  g();\n}\n"),
                         [(3, 6, "F")])

    def test_ignores_types_data_comments_and_literals(self):
        text = """
class A final : public B<int(int)> {
  int x = 0;
};
enum class E : int { kA };
const char* const kText = "void F() {";
const char* const kRaw = R"(void G() {)";
constexpr int kTable[] = {1, 2};
// void H() {
/* void I() { */
constexpr char kBrace = '{';
#define BODY(x) void x() {
"""
        self.assertEqual(functions(text), [])


if __name__ == "__main__":
    unittest.main()

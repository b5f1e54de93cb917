#include "trainer/parallel/consistency.h"

#include <algorithm>
#include <sstream>

#include "trainer/base/error/error.h"
#include "trainer/base/random/crc32c.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

// Quotes a line that differs from another one at `differs`; of a long line, the text around there.
std::string Quote(const std::string& line, size_t differs) {
  constexpr size_t kLongest = 200;
  size_t begin = std::min(line.find_first_not_of(' '), line.size());
  const bool is_far = differs > begin + kLongest / 2;
  if (is_far) begin = std::min(differs - kLongest / 4, line.size());
  return Join(is_far ? "'..." : "'", EscapeControl(line.substr(begin, kLongest)), "'");
}

// Returns the first pair of lines that differ, quoted; "nothing" in place of a text that has ended.
std::pair<std::string, std::string> FirstDifference(const std::string& a, const std::string& b) {
  std::istringstream a_lines(a), b_lines(b);
  std::string a_line, b_line;
  for (;;) {
    const bool a_more = static_cast<bool>(std::getline(a_lines, a_line));
    const bool b_more = static_cast<bool>(std::getline(b_lines, b_line));
    if (a_more && b_more && a_line == b_line) continue;
    if (!a_more) a_line.clear();
    if (!b_more) b_line.clear();
    const auto differs =
        static_cast<size_t>(std::ranges::mismatch(a_line, b_line).in1 - a_line.begin());
    return {a_more ? Quote(a_line, differs) : "nothing",
            b_more ? Quote(b_line, differs) : "nothing"};
  }
}

// Returns the number of the first item in which some rank differs from rank 0, and that rank, or
// {-1, -1}. Only rank 0 has the hashes.
std::pair<int, int> FindDifference(const std::vector<std::string>& hashes, size_t items) {
  std::vector<std::vector<std::string>> of_ranks;
  for (const std::string& text : hashes) of_ranks.push_back(SplitList(text));
  for (size_t fact = 0; fact < items; ++fact) {
    for (size_t rank = 1; rank < of_ranks.size(); ++rank) {
      const bool has = fact < of_ranks[rank].size();
      if (!has || of_ranks[rank][fact] != of_ranks[0][fact]) {
        return {static_cast<int>(fact), static_cast<int>(rank)};
      }
    }
  }
  return {-1, -1};
}

}  // namespace

void RequireConsistent(Communicator& group, const std::vector<std::string>& names,
                       const std::vector<ConsistencyItem>& items) {
  std::vector<std::string> hashes;
  for (const ConsistencyItem& fact : items) {
    hashes.push_back(Join(Crc32c(fact.value.data(), fact.value.size())));
  }
  const auto [fact, rank] = FindDifference(group.Gather(JoinList(hashes)), items.size());
  float number = static_cast<float>(fact);
  group.Broadcast({&number, 1});
  if (number < 0) return;
  const ConsistencyItem& own = items[std::min(static_cast<size_t>(number), items.size() - 1)];
  const std::vector<std::string> values = group.Gather(own.value);
  if (values.empty()) group.Broadcast({&number, 1});  // throws PeerFailed: rank 0 ends the run
  if (values.empty()) return;
  const auto [first, other] = FirstDifference(values[0], values[static_cast<size_t>(rank)]);
  throw Error(ErrorCode::kProtocol,
              Join("the ranks do not agree on ", own.name, ": ", names[0], " has ", first, ", ",
                   names[static_cast<size_t>(rank)], " has ", other,
                   ". Start all ranks with the same program, flags and files"));
}

}  // namespace trainer

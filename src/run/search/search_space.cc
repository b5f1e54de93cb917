#include "search/search_space.h"

#include <google/protobuf/descriptor.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <iterator>
#include <optional>
#include <set>
#include <string_view>

#include "solver.pb.h"
#include "trainer/base/error/error.h"
#include "trainer/base/file/file.h"
#include "trainer/base/random/crc32c.h"
#include "trainer/base/random/philox.h"
#include "trainer/base/text/parse_number.h"
#include "trainer/base/text/text.h"
#include "trainer/config/alternatives.h"

namespace trainer {
namespace {

constexpr std::string_view kDrawnKinds[] = {"log:", "uniform:", "int:", "choice:"};

// Returns where the value of "key=value" begins; an '=' in brackets belongs to the key. Returns
// npos for a text of another form.
size_t ValueBegin(const std::string& assignment) {
  int depth = 0;
  for (size_t i = 0; i < assignment.size(); ++i) {
    if (assignment[i] == '[') ++depth;
    if (assignment[i] == ']') --depth;
    if (assignment[i] == '=' && depth == 0) return i + 1;
  }
  return std::string::npos;
}

[[noreturn]] void FailAt(const std::string& assignment, const std::string& message) {
  throw Error(ErrorCode::kUsage, EscapeControl(Join("--set ", assignment, ": ", message)));
}

// Throws kUsage for a value that begins with a misspelt kind, such as "logg:0.01..1".
void RefuseUnknownKind(const std::string& assignment, std::string_view value) {
  const size_t colon = value.find(':');
  if (colon == std::string_view::npos || colon + 1 == value.size()) return;
  const std::string kind(value.substr(0, colon + 1));
  const char first = value[colon + 1];
  const bool is_range = value.find("..", colon) != std::string_view::npos &&
                        (first == '-' || std::isdigit(static_cast<unsigned char>(first)) != 0);
  const std::vector<std::string> kinds(std::begin(kDrawnKinds), std::end(kDrawnKinds));
  const std::string near = DidYouMean(kind, kinds);
  if (kind.find_first_not_of("abcdefghijklmnopqrstuvwxyz:") != std::string::npos) return;
  if (!is_range && near.empty()) return;
  FailAt(assignment, Join("there is no '", kind, "'.", near, " Values are drawn with one of ",
                          JoinList(kinds)));
}

// Returns whether the field of a key is a whole number: "batch", "iter_size",
// "layer[conv1].convolution_param.num_output".
bool TakesWholeNumbers(const std::string& key) {
  std::string path;  // the key without what is in brackets
  int depth = 0;
  for (const char c : key) {
    if (c == '[') ++depth;
    if (depth == 0) path += c;
    if (c == ']') --depth;
  }
  const google::protobuf::Descriptor* message = caffe::SolverParameter::descriptor();
  const google::protobuf::FieldDescriptor* field = nullptr;
  constexpr std::string_view kLayer = "layer.";
  if (path.starts_with(kLayer)) {
    message = caffe::LayerParameter::descriptor();
    path.erase(0, kLayer.size());
  }
  for (const std::string& name : SplitList(path, '.')) {
    field = message == nullptr ? nullptr : message->FindFieldByName(name);
    message = field == nullptr ? nullptr : field->message_type();
  }
  using Field = google::protobuf::FieldDescriptor;
  const auto type = field == nullptr ? Field::CPPTYPE_STRING : field->cpp_type();
  return key == "batch" || type == Field::CPPTYPE_INT32 || type == Field::CPPTYPE_INT64 ||
         type == Field::CPPTYPE_UINT32 || type == Field::CPPTYPE_UINT64;
}

// Returns the index in kDrawnKinds of the prefix of an assignment's value, or nothing. Throws
// kUsage for a prefix that is misspelt.
std::optional<size_t> KindIndex(const std::string& assignment) {
  const size_t begin = ValueBegin(assignment);
  if (begin == std::string::npos) return std::nullopt;
  const std::string_view value = std::string_view(assignment).substr(begin);
  for (size_t i = 0; i < std::size(kDrawnKinds); ++i) {
    if (value.starts_with(kDrawnKinds[i])) return i;
  }
  RefuseUnknownKind(assignment, value);
  return std::nullopt;
}

// Rounds to four significant digits.
double FourDigits(double value) {
  const double unit = std::pow(10, std::floor(std::log10(value)) - 3);
  return std::round(value / unit) * unit;
}

// Rounds to a power of ten that is at most a thousandth of `width`.
double RoundedWithin(double value, double width) {
  const double unit = std::pow(10, std::floor(std::log10(width / 1000)));
  return std::round(value / unit) * unit;
}

}  // namespace

bool IsDrawn(const std::string& assignment) { return KindIndex(assignment).has_value(); }

SearchSpace::SearchSpace(const std::vector<std::string>& assignments) {
  for (const std::string& assignment : assignments) {
    if (IsDrawn(assignment)) {
      dimensions_.push_back(Parse(assignment));
    } else if (Alternatives(assignment).size() > 1) {
      FailAt(assignment, "with --trials, write choice: before the values to draw one of them");
    } else {
      fixed_.push_back(assignment);
    }
  }
  if (!dimensions_.empty()) return;
  throw Error(ErrorCode::kUsage,
              "--trials: no --set has values to draw; write e.g. --set base_lr=log:1e-4..1e-1, "
              "momentum=uniform:0.8..0.99, iter_size=int:1..4 or batch=choice:32,64");
}

SearchSpace::Dimension SearchSpace::Parse(const std::string& assignment) {
  const size_t begin = ValueBegin(assignment), index = *KindIndex(assignment);
  Dimension dimension;
  dimension.key = assignment.substr(0, begin - 1);
  dimension.kind = static_cast<Kind>(index);
  const std::string text = assignment.substr(begin + kDrawnKinds[index].size());
  if (dimension.kind == Kind::kChoice) {
    dimension.values = Alternatives(Join(dimension.key, "=", text));
    const std::set<std::string> distinct(dimension.values.begin(), dimension.values.end());
    if (distinct.size() < 2 || distinct.size() < dimension.values.size()) {
      FailAt(assignment, "give at least two different values, such as choice:32,64");
    }
    return dimension;
  }
  const size_t dots = std::min(text.find(".."), text.size());
  const std::string low = text.substr(0, dots), high = text.substr(std::min(dots + 2, text.size()));
  dimension.low = ParseNumber<double>(low).value_or(NAN);
  dimension.high = ParseNumber<double>(high).value_or(NAN);
  if (dimension.kind == Kind::kInt &&
      !(ParseNumber<int32_t>(low).has_value() && ParseNumber<int32_t>(high).has_value())) {
    FailAt(assignment, "give two whole numbers, such as int:1..8");
  }
  const double width = dimension.high - dimension.low;
  if (!(width > 0) || !std::isfinite(width)) {
    FailAt(assignment, Join("give two numbers, the lower one first, such as ", kDrawnKinds[index],
                            dimension.kind == Kind::kInt ? "1..8" : "0.001..0.1"));
  }
  if (dimension.kind != Kind::kInt && TakesWholeNumbers(dimension.key)) {
    FailAt(assignment, Join(dimension.key,
                            " takes whole numbers; draw them with int:, such as int:1..8, or with "
                            "choice:"));
  }
  if (dimension.kind == Kind::kLog && dimension.low <= 0) {
    FailAt(assignment, "a range of log: begins above 0; for one that does not use uniform:");
  }
  return dimension;
}

std::string SearchSpace::SettingAt(const Dimension& dimension, double position) {
  const double width = dimension.high - dimension.low;
  double value = 0;
  switch (dimension.kind) {
    case Kind::kChoice: {
      const auto count = static_cast<double>(dimension.values.size());
      return dimension.values[static_cast<size_t>(position * count)];
    }
    case Kind::kInt: {
      const double offset = std::floor(position * (width + 1));
      return Join(dimension.key, "=", static_cast<int64_t>(dimension.low + offset));
    }
    case Kind::kLog:
      value = FourDigits(dimension.low * std::pow(dimension.high / dimension.low, position));
      break;
    case Kind::kUniform:
      value = RoundedWithin(dimension.low + position * width, width);
      break;
  }
  value = std::clamp(value, dimension.low, dimension.high);
  return Join(dimension.key, "=", ShortestText(static_cast<float>(value)));
}

Trial SearchSpace::Draw(uint64_t seed, int number) const {
  Trial trial;
  trial.number = number;
  for (const Dimension& dimension : dimensions_) {
    const PhiloxKey key{seed, Crc32c(dimension.key.data(), dimension.key.size())};
    const Philox4 words = PhiloxBlock(key, static_cast<uint32_t>(number), 0);
    const double position = (words.x[0] + words.x[1] * 0x1p-32) * 0x1p-32;
    trial.settings.push_back(SettingAt(dimension, std::min(position, 1 - 0x1p-53)));
  }
  for (const std::string& assignment : fixed_) AddChange(assignment, &trial);
  for (const std::string& setting : trial.settings) AddChange(setting, &trial);
  return trial;
}

double SearchSpace::Combinations() const {
  double count = 1;
  for (const Dimension& dimension : dimensions_) {
    switch (dimension.kind) {
      case Kind::kChoice:
        count *= static_cast<double>(dimension.values.size());
        break;
      case Kind::kInt:
        count *= dimension.high - dimension.low + 1;
        break;
      case Kind::kLog:
      case Kind::kUniform:
        return INFINITY;
    }
  }
  return count;
}

std::string TrialName(int number) {
  const std::string digits = Join(number);
  return Join("trial_", std::string(4 - std::min<size_t>(4, digits.size()), '0'), digits);
}

std::vector<Trial> DrawTrials(const SearchSpace& space, uint64_t seed, int trials, int seeds,
                              const std::string& folder, const std::string& prefix) {
  if (space.Combinations() <= trials) {
    throw Error(ErrorCode::kUsage,
                Join("--trials=", trials, ": there are only ", space.Combinations(),
                     " different trials; to train all of them, list the values as a grid, without "
                     "choice: and --trials"));
  }
  std::vector<Trial> runs;
  for (int number = 1; number <= trials; ++number) {
    Trial trial = space.Draw(seed, number);
    trial.folder = JoinPath(folder, TrialName(number));
    std::ranges::move(RunsOf(trial, seeds, "_", prefix), std::back_inserter(runs));
  }
  return runs;
}

}  // namespace trainer

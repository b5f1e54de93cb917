#include "support/golden.h"

#include <fstream>
#include <sstream>

#include "support/source_folder.h"
#include "trainer/base/error/error.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

template <class Map>
const auto& Find(const GoldenCase& in, const Map& map, const std::string& key) {
  const auto found = map.find(key);
  if (found == map.end()) {
    throw Error(ErrorCode::kData, Join("golden case '", in.name, "' has no entry '", key, "'"));
  }
  return found->second;
}

// Reads one file; keeps the line number for messages.
class Reader {
 public:
  Reader(std::string name, const std::string& content) : name_(std::move(name)), in_(content) {}

  std::vector<GoldenCase> Read() {
    std::string line;
    while (NextLine(line)) {
      std::istringstream words(line);
      std::string keyword, name;
      if (!(words >> keyword)) continue;
      if (!(words >> name)) Fail(Join("'", keyword, "' needs a name"));
      if (keyword == "case") {
        std::string rest;
        std::getline(words, rest);
        cases_.emplace_back().name = name + rest;
      } else if (cases_.empty()) {
        Fail(Join("'", keyword, "' comes before the first case"));
      } else if (keyword == "text") {
        cases_.back().texts[name] = ReadText();
      } else if (keyword == "tensor") {
        cases_.back().tensors[name] = ReadTensor(words);
      } else if (keyword == "number") {
        if (!(words >> cases_.back().numbers[name])) Fail("a number was expected");
      } else {
        Fail(Join("unknown keyword '", keyword, "'"));
      }
    }
    return std::move(cases_);
  }

 private:
  [[noreturn]] void Fail(const std::string& message) const {
    throw Error(ErrorCode::kData, SourceRef{name_, line_, 0}, message);
  }

  // Reads the next line that is not a comment.
  bool NextLine(std::string& line) {
    do {
      if (!std::getline(in_, line)) return false;
      ++line_;
    } while (!line.empty() && line[0] == '#');
    return true;
  }

  std::string ReadText() {
    std::string line, text;
    while (std::getline(in_, line)) {
      ++line_;
      if (line == "end") return text;
      text += line + "\n";
    }
    Fail("the text has no 'end'");
  }

  GoldenTensor ReadTensor(std::istringstream& words) {
    GoldenTensor tensor;
    int64_t count = 1;
    for (std::string word; words >> word && word != ":";) {
      tensor.dims.push_back(std::stoll(word));
      count *= tensor.dims.back();
    }
    Append(words, tensor.values);
    std::string line;
    while (static_cast<int64_t>(tensor.values.size()) < count && NextLine(line)) {
      std::istringstream more(line);
      Append(more, tensor.values);
    }
    if (static_cast<int64_t>(tensor.values.size()) != count) {
      Fail(Join(tensor.values.size(), " numbers where the shape asks for ", count));
    }
    return tensor;
  }

  void Append(std::istringstream& words, std::vector<float>& values) const {
    for (float value; words >> value;) values.push_back(value);
    if (!words.eof()) Fail("a number was expected");
  }

  std::string name_;
  std::istringstream in_;
  int line_ = 0;
  std::vector<GoldenCase> cases_;
};

uint32_t Mix(uint32_t x) {
  x ^= x >> 16;
  x *= 0x85ebca6bu;
  x ^= x >> 13;
  x *= 0xc2b2ae35u;
  return x ^ x >> 16;
}

constexpr uint32_t kLabelStream = 101, kNoiseStream = 102, kPatternStream = 103, kMeanStream = 104;

}  // namespace

const std::string& GoldenCase::Text(const std::string& key) const {
  return Find(*this, texts, key);
}

const GoldenTensor& GoldenCase::Tensor(const std::string& key) const {
  return Find(*this, tensors, key);
}

double GoldenCase::Number(const std::string& key) const { return Find(*this, numbers, key); }

std::vector<GoldenCase> ReadGolden(const std::string& file) {
  const std::string path = Join(SourceFolder(), "/tests/golden/", file);
  std::ifstream in(path);
  if (!in) throw Error(ErrorCode::kNoInput, SourceRef{path}, "cannot open the golden values");
  std::ostringstream content;
  content << in.rdbuf();
  return ParseGolden(file, content.str());
}

std::vector<GoldenCase> ParseGolden(const std::string& name, const std::string& content) {
  return Reader(name, content).Read();
}

uint32_t HashWord(uint32_t stream, uint32_t index) { return Mix(Mix(stream) + index); }

float HashWeight(uint32_t stream, uint32_t index, double bound) {
  const double unit = static_cast<double>(HashWord(stream, index) >> 8) / 16777216.0;
  return static_cast<float>((2 * unit - 1) * bound);
}

uint32_t HashLabel(uint32_t index, uint32_t classes) {
  return HashWord(kLabelStream, index) % classes;
}

uint8_t HashPixel(uint32_t index, uint32_t label, uint32_t pixel, uint32_t pixels) {
  const uint32_t noise = HashWord(kNoiseStream, index * pixels + pixel) >> 25;
  const uint32_t pattern = HashWord(kPatternStream, label * pixels + pixel) >> 31;
  return static_cast<uint8_t>(noise + 128 * pattern);
}

uint8_t HashMean(uint32_t pixel) {
  return static_cast<uint8_t>(HashWord(kMeanStream, pixel) >> 24);
}

}  // namespace trainer

// The lines of a log of this program or of Caffe.

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <string_view>

#include "trainer/base/file/file.h"
#include "trainer/base/text/text.h"
#include "trainer/monitor/run_metrics.h"

namespace trainer {
namespace {

constexpr uint64_t kTrainingLogMostBytes = uint64_t{1} << 31;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Reads a number at the front of `text` and removes it there.
template <class T>
std::optional<T> TakeNumber(std::string_view* text) {
  T number{};
  const auto [stop, error] = std::from_chars(text->data(), text->data() + text->size(), number);
  if (error != std::errc()) return std::nullopt;
  text->remove_prefix(static_cast<size_t>(stop - text->data()));
  return number;
}

// Returns the text after the first `key` of the line; nothing if there is none.
std::optional<std::string_view> After(std::string_view line, std::string_view key) {
  const size_t at = line.find(key);
  if (at == std::string_view::npos) return std::nullopt;
  return line.substr(at + key.size());
}

// Returns the number after the first `key` of the line. "nan" and "inf" do not count as numbers.
std::optional<double> NumberAfter(std::string_view line, std::string_view key) {
  std::optional<std::string_view> rest = After(line, key);
  if (!rest) return std::nullopt;
  if (rest->starts_with('+')) rest->remove_prefix(1);
  const std::optional<double> number = TakeNumber<double>(&*rest);
  if (rest->starts_with('#')) return std::nullopt;  // Windows writes 1.#QNAN and 1.#INF
  return number && std::isfinite(*number) ? number : std::nullopt;
}

// Returns the days since 1970 of a date (Howard Hinnant's "days from civil").
int64_t DayNumber(int64_t year, int month, int day) {
  year -= month <= 2 ? 1 : 0;
  const int64_t era = year / 400, of_era = year % 400;
  const int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
  return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

// Returns the position of the blank in the prefix of glog, "I0102 03:04:05.678901" or
// "I20260102 ...". Skips text before the prefix: blanks of a quoted log, the rank that mpirun
// writes.
size_t FindBlank(std::string_view line) {
  constexpr size_t kFarthest = 40;
  for (size_t at = 0; at < std::min(line.size(), kFarthest); ++at) {
    if (std::string_view("IWEF").find(line[at]) == std::string_view::npos) continue;
    const size_t blank = line.find(' ', at);
    if (blank == std::string_view::npos) break;
    const std::string_view date = line.substr(at + 1, blank - at - 1);
    if ((date.size() == 4 || date.size() == 8) && std::ranges::all_of(date, IsDigit)) return blank;
  }
  return std::string_view::npos;
}

// Reads from the prefix of glog when lines were written.
class LineTimes {
 public:
  // Returns microseconds, or nothing for a line without the prefix. If the month is earlier than in
  // the previous line, a new year has begun.
  std::optional<int64_t> Read(std::string_view line) {
    const size_t blank = FindBlank(line);
    if (blank == std::string_view::npos) return std::nullopt;
    const std::string_view date = line.substr(blank - 4, 4);
    const int month = (date[0] - '0') * 10 + date[1] - '0',
              day = (date[2] - '0') * 10 + date[3] - '0';
    if (month < 1 || month > 12 || day < 1 || day > 31) return std::nullopt;
    if (month < month_) ++year_;
    month_ = month;
    std::string_view clock = line.substr(blank + 1);
    const auto hours = TakeNumber<int>(&clock);
    if (!hours || !clock.starts_with(':')) return std::nullopt;
    clock.remove_prefix(1);
    const auto minutes = TakeNumber<int>(&clock);
    if (!minutes || !clock.starts_with(':')) return std::nullopt;
    clock.remove_prefix(1);
    const auto seconds = TakeNumber<double>(&clock);
    if (!seconds) return std::nullopt;
    const int64_t whole = DayNumber(year_, month, day) * 86400 + *hours * 3600 + *minutes * 60;
    return whole * 1000000 + std::llround(*seconds * 1e6);
  }

 private:
  int64_t year_ = 2000;  // only differences count; a leap year, so that none is refused
  int month_ = 0;
};

// Adds the lines of a log, in the order of the file, to the metrics of a run.
class LogReader {
 public:
  explicit LogReader(RunMetrics* history) : history_(*history) {}

  // Adds what a line says. Ignores lines before the first "Solving" or "Iteration".
  void Read(std::string_view line) {
    const std::optional<int64_t> time = times_.Read(line);
    if (const auto net = After(line, "] Solving ")) Begin(*net);
    if (time && !begin_ && (history_.starts > 0 || told_)) begin_ = time;
    if (time && begin_) seconds_ = static_cast<double>(*time - *begin_) / 1e6;
    if (const auto iter = NumberAfter(line, "Iteration ")) SetIter(*iter);
    if (history_.starts == 0 && !told_) return;
    if (const auto net = NumberAfter(line, "Testing net (#")) net_ = static_cast<size_t>(*net);
    if (const auto rate = NumberAfter(line, "lr = ")) AddRate(*rate);
    if (const auto loss = NumberAfter(line, ", loss = ")) RecordLoss(*loss);
    if (const auto output = After(line, "Train net output #")) AddOutput(*output, &history_.train);
    if (const auto output = After(line, "Test net output #")) AddTest(*output);
    if (const auto score = After(line, "Test score #")) AddScore(*score);
    if (const auto model = After(line, "] Snapshotting to ")) SetModel(*model);
    if (line.find("Optimization Done.") != std::string_view::npos) history_.ended = true;
    if (line.find("Optimization stopped early.") != std::string_view::npos) {
      history_.stopped_early = true;
    }
  }

  // Completes the metrics after the last line. The first row gets the rate of the second, because
  // the log has no rate before it.
  void Finish() {
    FixFirst(&history_.train);
    for (auto& rows : history_.tests) FixFirst(&rows);
    history_.seconds = seconds_;
    history_.last_iter = static_cast<int64_t>(iter_);
  }

 private:
  // Notes a start and, if it is the first, the name of the net. Its first iteration follows in a
  // later line.
  void Begin(std::string_view net) {
    if (history_.starts++ == 0) history_.net = net;
    history_.ended = history_.stopped_early = false;
    fresh_ = true;
  }

  // Sets the iteration of the lines that follow.
  void SetIter(double iter) {
    told_ = true;
    // A resumed run repeats the iterations that the previous start logged after the snapshot.
    if (fresh_) DropFrom(iter, &history_);
    if (fresh_) history_.first_iter = static_cast<int64_t>(iter);
    fresh_ = false;
    iter_ = iter;
  }

  void AddRate(double rate) {
    rate_ = rate;
    history_.rate.push_back({iter_, rate});
  }

  void RecordLoss(double loss) { history_.loss.push_back({iter_, loss}); }

  // Adds an output to the test net that the last line "Testing net" named.
  void AddTest(std::string_view text) {
    constexpr size_t kMost = 1000;
    if (net_ >= kMost) return;
    if (history_.tests.size() <= net_) history_.tests.resize(net_ + 1);
    AddOutput(text, &history_.tests[net_]);
  }

  // Adds "0: 0.98", the form in which Caffe wrote outputs without their names until 2014.
  void AddScore(std::string_view text) {
    const size_t colon = text.find(": ");
    if (colon == std::string_view::npos) return;
    AddTest(Join("0: score[", text.substr(0, colon), "] = ", text.substr(colon + 2)));
  }

  // Notes the file of a snapshot. The words before its name differ between versions of Caffe.
  void SetModel(std::string_view text) {
    for (const std::string_view kind : {"binary proto file ", "HDF5 file "}) {
      if (text.starts_with(kind)) text.remove_prefix(kind.size());
    }
    history_.model = text;
  }

  // Adds "0: accuracy = 0.98" to the row of this iteration. An output of several elements, which
  // have the same name, keeps its last one.
  void AddOutput(std::string_view text, std::vector<MetricRow>* rows) const {
    const auto name_at = After(text, ": ");
    if (!name_at) return;
    const std::string name(name_at->substr(0, name_at->find(' ')));
    const std::optional<double> value = NumberAfter(*name_at, " = ");
    if (!value) return;
    if (rows->empty() || rows->back().iter != iter_) rows->push_back({iter_, seconds_, rate_, {}});
    auto& outputs = rows->back().outputs;
    const auto found =
        std::ranges::find(outputs, name, [](const auto& output) { return output.first; });
    if (found == outputs.end()) {
      outputs.emplace_back(name, *value);
    } else {
      found->second = *value;
    }
  }

  // Gives the first row the learning rate of the second.
  static void FixFirst(std::vector<MetricRow>* rows) {
    if (rows->size() > 1) (*rows)[0].rate = (*rows)[1].rate;
  }

  RunMetrics& history_;
  LineTimes times_;
  std::optional<int64_t> begin_;  // of the first start
  double seconds_ = 0, iter_ = 0;
  double rate_ = std::numeric_limits<double>::quiet_NaN();
  size_t net_ = 0;
  bool fresh_ = false;  // a start without an iteration yet
  bool told_ = false;   // an iteration
};

}  // namespace

RunMetrics ReadTrainingLog(const std::string& path) {
  const std::string text = ReadFile(path, kTrainingLogMostBytes);
  RunMetrics history;
  history.path = path;
  LogReader reader(&history);
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line(text.data() + at, end - at);
    if (line.ends_with('\r')) line.remove_suffix(1);
    reader.Read(line);
    at = end + 1;
  }
  reader.Finish();
  if (history.loss.empty() && history.train.empty() && history.tests.empty()) {
    throw Error(ErrorCode::kData, {AbsolutePath(path)},
                "this is not a training log: no line has 'Iteration N, loss = ...'. Give the log "
                "that 'trainer train' or 'caffe train' wrote to stderr");
  }
  return history;
}

}  // namespace trainer

// The text of the live line.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

#include "trainer/base/text/text.h"
#include "trainer/monitor/live_view.h"

namespace trainer {
namespace {

// A field in its long and its short form. On a narrow terminal, fields with the least `worth` are
// shortened first.
struct LineField {
  std::string text, brief;
  int worth = 0;
};

// Returns the number with at most `digits` significant digits.
std::string ShortNumber(double value, int digits) {
  char text[32];
  std::snprintf(text, sizeof text, "%.*g", digits, value);
  return text;
}

// Returns a speed with the more decimals, the smaller it is: "1234", "12.3" or "0.45".
std::string Speed(double value) {
  char text[32];
  const int decimals = value >= 100 ? 0 : value >= 10 ? 1 : 2;
  std::snprintf(text, sizeof text, "%.*f", decimals, value);
  return text;
}

// Returns the fraction of max_iter that is done, from 0 to 1.
double Share(const LiveState& state) {
  return state.max_iter > 0 ? std::clamp(1.0 * state.iter / state.max_iter, 0.0, 1.0) : 0;
}

// Returns a progress bar of 22 columns, such as "[=========>          ]".
std::string Bar(double share) {
  constexpr int kWidth = 20;
  const int full = static_cast<int>(share * kWidth);
  std::string bar(static_cast<size_t>(full), '=');
  if (full < kWidth) bar += '>';
  bar.resize(kWidth, ' ');
  return "[" + bar + "]";
}

// Estimates the time left from the mean time of an iteration since the start of this process, tests
// and snapshots included. Returns "" before the first iteration has ended.
std::string TimeLeft(const LiveState& state) {
  const int done = state.iter - state.first_iter;
  if (done <= 0 || !(state.seconds > 0)) return "";
  return ClockText(state.seconds / done * std::max(state.max_iter - state.iter, 0));
}

// Returns the fields of the line from left to right; fields whose values are unknown are left out.
std::vector<LineField> FieldsOf(const LiveState& state) {
  std::vector<LineField> fields;
  const auto add = [&](const std::string& text, const std::string& brief, int worth) {
    fields.push_back({text, brief, worth});
  };
  add(Join("iteration ", state.iter, " of ", state.max_iter), Join(state.iter, "/", state.max_iter),
      10);
  add(Bar(Share(state)), "", 1);
  add(Join(std::floor(100 * Share(state)), " %"), Join(std::floor(100 * Share(state)), "%"), 2);
  if (!state.doing.empty()) add(state.doing, state.doing, 9);
  if (state.epoch >= 0) add(Join("epoch ", state.epoch + 1), Join("ep ", state.epoch + 1), 4);
  if (state.has_loss) {
    add("loss " + ShortNumber(state.loss, 4), "loss " + ShortNumber(state.loss, 4), 8);
    add("rate " + ShortNumber(state.rate, 4), "rate " + ShortNumber(state.rate, 3), 3);
  }
  if (state.images_per_second > 0) {
    const std::string speed = Speed(state.images_per_second);
    add(speed + " images/s", speed + " img/s", 5);
  } else if (state.iterations_per_second > 0) {
    const std::string speed = Speed(state.iterations_per_second);
    add(speed + " iter/s", speed + " iter/s", 5);
  }
  if (state.gpu_busy >= 0) {
    add(Join("GPU ", std::lround(100 * state.gpu_busy), " %"),
        Join("GPU ", std::lround(100 * state.gpu_busy), "%"), 1);
  }
  const std::string left = TimeLeft(state);
  if (!left.empty()) add(left + " left", left + " left", 7);
  return fields;
}

// Joins the long or the short forms. A field whose form is "" takes no room.
std::string JoinFields(const std::vector<LineField>& fields, bool brief) {
  std::string line;
  for (const LineField& field : fields) {
    const std::string& text = brief ? field.brief : field.text;
    if (!text.empty()) line += (line.empty() ? "" : "  ") + text;
  }
  return line;
}

}  // namespace

std::string ClockText(double seconds) {
  const auto all = static_cast<int64_t>(std::min(std::max(seconds, 0.0), 1e9) + 0.5);
  const int64_t days = all / 86400;
  char text[64];
  std::snprintf(text, sizeof text, "%d:%02d:%02d", static_cast<int>(all / 3600 % 24),
                static_cast<int>(all / 60 % 60), static_cast<int>(all % 60));
  return days == 0 ? text : Join(days, "d ", text);
}

std::string LiveLine(const LiveState& state, int width) {
  const auto room = static_cast<size_t>(std::max(width, 1));
  if (state.max_iter == 0) return state.doing.substr(0, room);
  std::vector<LineField> fields = FieldsOf(state);
  std::string line = JoinFields(fields, false);
  if (line.size() > room) line = JoinFields(fields, true);
  while (line.size() > room && fields.size() > 1) {
    fields.erase(std::ranges::min_element(fields, {}, &LineField::worth));
    line = JoinFields(fields, true);
  }
  return line.substr(0, room);
}

}  // namespace trainer

#include "trainer/cli/flag_set.h"

#include <algorithm>
#include <cstdlib>

#include "gflags_store.h"
#include "trainer/base/error/error.h"
#include "trainer/base/text/parse_number.h"
#include "trainer/base/text/text.h"
#include "trainer/cli/common_flags.h"

namespace trainer {
namespace {

// Parses the flag's value. Throws kUsage if T cannot hold it.
template <class T>
T NumberFrom(const Flags& flags, const std::string& name) {
  const std::string& text = flags.Text(name);
  if (const std::optional<T> value = ParseNumber<T>(text)) return *value;
  throw Error(ErrorCode::kUsage, Join("--", name, "=", EscapeControl(text), ": not a number"));
}

// Says how a type of variable is declared and read: kKind is the kind of its flag, Text turns the
// variable's default into the flag's fallback, and Read parses the flag's value.
template <class T>
struct ValueOf;

template <>
struct ValueOf<bool> {
  static constexpr FlagKind kKind = FlagKind::kSwitch;
  // Returns "" for false, so that help does not print a default.
  static std::string Text(bool value) { return value ? "true" : ""; }
  static bool Read(const Flags& flags, const std::string& name) { return flags.Switch(name); }
};

template <class T>
struct WholeNumber {
  static constexpr FlagKind kKind = FlagKind::kWhole;
  static std::string Text(T value) { return Join(value); }
  static T Read(const Flags& flags, const std::string& name) { return NumberFrom<T>(flags, name); }
};
template <>
struct ValueOf<int> : WholeNumber<int> {};
template <>
struct ValueOf<int64_t> : WholeNumber<int64_t> {};

template <>
struct ValueOf<double> {
  static constexpr FlagKind kKind = FlagKind::kText;
  static std::string Text(double value) { return Join(value); }
  static double Read(const Flags& flags, const std::string& name) {
    return NumberFrom<double>(flags, name);
  }
};

template <>
struct ValueOf<std::string> {
  static constexpr FlagKind kKind = FlagKind::kText;
  static std::string Text(const std::string& value) { return value; }
  static std::string Read(const Flags& flags, const std::string& name) { return flags.Text(name); }
};

template <>
struct ValueOf<std::vector<std::string>> {
  static constexpr FlagKind kKind = FlagKind::kEach;
  // Returns "": a repeated flag replaces the default by the values that were given.
  static std::string Text(const std::vector<std::string>&) { return ""; }
  static std::vector<std::string> Read(const Flags& flags, const std::string& name) {
    return flags.Each(name);
  }
};

template <class T>
struct ValueOf<std::optional<T>> {
  static constexpr FlagKind kKind = ValueOf<T>::kKind;
  static std::string Text(const std::optional<T>& value) {
    return value ? ValueOf<T>::Text(*value) : "";
  }
  // Returns nothing for an empty value, so that the program can tell that the flag was not given.
  static std::optional<T> Read(const Flags& flags, const std::string& name) {
    if (!flags.Has(name)) return std::nullopt;
    return ValueOf<T>::Read(flags, name);
  }
};

}  // namespace

FlagSet::Declared FlagSet::Declare(std::string_view name, FlagKind kind, std::string_view metavar,
                                   std::string fallback, std::string_view help, Setter setter) {
  flags_.push_back({.name = name,
                    .kind = kind,
                    .value = metavar,
                    .fallback = Keep(std::move(fallback)),
                    .help = help,
                    .group = group_});
  setters_.push_back(std::move(setter));
  return Declared(&flags_.back());
}

template <class T>
FlagSet::Declared FlagSet::Bind(T* variable, std::string_view name, std::string_view metavar,
                                std::string_view help) {
  const std::string key(name);
  return Declare(name, ValueOf<T>::kKind, metavar, ValueOf<T>::Text(*variable), help,
                 [variable, key](const Flags& flags) {
                   // A repeated flag that is not given leaves the variable's default.
                   const bool is_repeated = ValueOf<T>::kKind == FlagKind::kEach;
                   if (is_repeated && flags.Each(key).empty()) return;
                   *variable = ValueOf<T>::Read(flags, key);
                 });
}

template FlagSet::Declared FlagSet::Bind(bool*, std::string_view, std::string_view,
                                         std::string_view);
template FlagSet::Declared FlagSet::Bind(int*, std::string_view, std::string_view,
                                         std::string_view);
template FlagSet::Declared FlagSet::Bind(int64_t*, std::string_view, std::string_view,
                                         std::string_view);
template FlagSet::Declared FlagSet::Bind(double*, std::string_view, std::string_view,
                                         std::string_view);
template FlagSet::Declared FlagSet::Bind(std::string*, std::string_view, std::string_view,
                                         std::string_view);
template FlagSet::Declared FlagSet::Bind(std::vector<std::string>*, std::string_view,
                                         std::string_view, std::string_view);
template FlagSet::Declared FlagSet::Bind(std::optional<bool>*, std::string_view, std::string_view,
                                         std::string_view);
template FlagSet::Declared FlagSet::Bind(std::optional<int>*, std::string_view, std::string_view,
                                         std::string_view);
template FlagSet::Declared FlagSet::Bind(std::optional<double>*, std::string_view, std::string_view,
                                         std::string_view);
template FlagSet::Declared FlagSet::Bind(std::optional<std::string>*, std::string_view,
                                         std::string_view, std::string_view);

FlagSet::Declared FlagSet::BindList(std::vector<std::string>* variable, std::string_view name,
                                    std::string_view metavar, std::string_view help) {
  const std::string key(name);
  return Declare(name, FlagKind::kText, metavar, JoinList(*variable, ","), help,
                 [variable, key](const Flags& flags) { *variable = flags.List(key); });
}

void FlagSet::BindWords(std::vector<std::string>* words, size_t most) {
  words_ = words;
  most_words_ = most;
}

void FlagSet::Add(const std::vector<Flag>& flags) {
  for (Flag flag : flags) {
    if (flag.group.empty()) flag.group = group_;
    flags_.push_back(flag);
  }
}

void FlagSet::Parse(const std::vector<std::string>& arguments) {
  std::vector<Flag> table = flags_;
  table.insert(table.end(), CommonFlags().begin(), CommonFlags().end());
  values_ = ParseFlags(verb_, table, ExpandFlagFiles(arguments));
  StoreInGflags(table, values_);
  for (const Setter& setter : setters_) setter(values_);
  if (words_ != nullptr) *words_ = values_.words();
}

void FlagSet::CheckRequired(std::string_view usage) const {
  for (const Flag& flag : flags_) {
    if (!flag.required || values_.Has(flag.name)) continue;
    throw Error(ErrorCode::kUsage, Join("'trainer ", verb_, "' needs --", flag.name, "=",
                                        flag.value, ". Usage: ", usage));
  }
}

std::vector<std::string> GivenFlags(std::span<const Flag> table, const Flags& flags) {
  std::vector<std::string> words;
  for (const Flag& flag : table) {
    const std::string& value = flags.Text(flag.name);
    const bool is_default = flag.kind == FlagKind::kSwitch
                                ? (value == "true") == (flag.fallback == "true")
                                : value == flag.fallback;
    if (is_default || flag.kind == FlagKind::kEach) continue;
    if (flag.kind == FlagKind::kSwitch) {
      words.push_back(Join(value == "true" ? "--" : "--no", flag.name));
    } else {
      words.push_back(Join("--", flag.name, "=", value));
    }
  }
  return words;
}

}  // namespace trainer

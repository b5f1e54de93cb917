#pragma once
// The flags of one verb, bound to the variables that hold their values.
//
// Flags are spelled as in gflags: --flag=value, --flag value, with one dash or two; --flag,
// --noflag and --flag=false for switches; "--" ends the flags. A flag given twice has its last
// value, unless it is bound to a vector. The values are registered with gflags under their names,
// and its --flagfile, --fromenv and --tryfromenv work.

#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace trainer {

// kEach may be given many times and keeps every value.
enum class FlagKind { kText, kWhole, kSwitch, kEach };

struct Flag {
  std::string_view name;
  FlagKind kind = FlagKind::kText;
  std::string_view value = "";     // the word for the value in help: "FILE"
  std::string_view fallback = "";  // the value when it is not given
  std::string_view help = "";
  bool required = false;
  bool hidden = false;            // left out of help
  std::string_view choices = "";  // "TRAIN|TEST": the only values, "" for any
  // With a single choice, how to give another value: "to resume from a file give --snapshot="
  std::string_view otherwise = "";
  std::string_view also = "";   // another accepted name
  std::string_view bare = "";   // its value without "=value": --gpu; "": it must have one
  std::string_view group = "";  // its heading in help: "ranks"
  // Bounds of a whole number.
  int64_t min = 0;
  int64_t max = std::numeric_limits<int32_t>::max();
};

// The texts of a command line, by the flags' names. The members throw kInternal for a name that the
// verb does not have.
class Flags {
 public:
  // Returns the value as given last, the default if it was not given, and "true" or "false" for a
  // switch.
  const std::string& Text(std::string_view name) const;
  // Returns the value of a whole number, 0 if it is empty.
  int Whole(std::string_view name) const;
  // Returns whether a switch is on.
  bool Switch(std::string_view name) const;
  // Returns whether the flag has a value that is not empty, its default included.
  bool Has(std::string_view name) const { return !Text(name).empty(); }
  // Returns whether the command line has the flag, even with its default as the value.
  bool IsGiven(std::string_view name) const { return given_.contains(name); }
  // Returns the items of a list "a, b,c" without blanks and empty items.
  std::vector<std::string> List(std::string_view name) const;
  // Returns every value of a kEach flag, in order; none if it was not given.
  const std::vector<std::string>& Each(std::string_view name) const;
  // Returns the positional arguments, in order.
  const std::vector<std::string>& words() const { return words_; }

 private:
  friend class FlagParser;
  std::map<std::string, std::string, std::less<>> values_;
  std::map<std::string, std::vector<std::string>, std::less<>> each_;
  std::set<std::string, std::less<>> given_;
  std::vector<std::string> words_;
};

class FlagSet {
 public:
  // `verb` is for messages: "train", "dataset pack".
  explicit FlagSet(std::string verb) : verb_(std::move(verb)) {}
  FlagSet(const FlagSet&) = delete;
  FlagSet& operator=(const FlagSet&) = delete;

  // The flag that Bind has just declared; valid until the next declaration.
  class Declared {
   public:
    explicit Declared(Flag* flag) : flag_(flag) {}
    Declared& Required() { return Set(&Flag::required, true); }
    Declared& Hidden() { return Set(&Flag::hidden, true); }
    Declared& Choices(std::string_view choices) { return Set(&Flag::choices, choices); }
    // With one choice: how to give another value.
    Declared& Otherwise(std::string_view hint) { return Set(&Flag::otherwise, hint); }
    // Accepts the flag also under another name, which help does not list.
    Declared& Alias(std::string_view name) { return Set(&Flag::also, name); }
    // The value of the flag when it is given without one.
    Declared& IfBare(std::string_view value) { return Set(&Flag::bare, value); }
    // Bounds of a whole number; without them 0 and 2^31 - 1.
    Declared& Range(int64_t min, int64_t max = std::numeric_limits<int32_t>::max()) {
      flag_->min = min;
      return Set(&Flag::max, max);
    }

   private:
    template <class T>
    Declared& Set(T Flag::*member, T value) {
      flag_->*member = value;
      return *this;
    }
    Flag* flag_;
  };

  // Declares --`name`. The variable's value is the default; Parse replaces it. `metavar` is the
  // word for the value in help: "FILE". The strings must outlive the set. T: bool, int, int64_t,
  // double, std::string, std::vector<std::string> (given several times), and std::optional of a
  // number or a string, which stays empty without the flag.
  template <class T>
  Declared Bind(T* variable, std::string_view name, std::string_view metavar,
                std::string_view help);
  // Declares --`name` for a list "a, b,c", which replaces the whole vector.
  Declared BindList(std::vector<std::string>* variable, std::string_view name,
                    std::string_view metavar, std::string_view help);
  // Declares --`name` for one value of an enumeration, by the names of `choices`, whatever their
  // case.
  template <class E>
  Declared BindChoice(E* variable, std::string_view name, std::string_view metavar,
                      std::vector<std::pair<std::string_view, E>> choices, std::string_view help);
  // Declares the positional arguments. A verb without this call has none; Parse accepts any number,
  // and the command line refuses more than `most`.
  void BindWords(std::vector<std::string>* words, size_t most);
  // Sets the heading in help of the flags that are declared from now on; "" for none.
  void BeginGroup(std::string_view heading) { group_ = heading; }
  // Declares flags without variables; values() has their values. A flag without a group gets the
  // group of BeginGroup.
  void Add(const std::vector<Flag>& flags);

  // Reads `arguments` (without program and verb), also from the sources that ExpandFlagFiles names,
  // and sets the variables. Throws kUsage for a flag that is not declared (naming the nearest), and
  // for a missing or impossible value. Required flags are checked by CheckRequired, since a word
  // may have been meant for one.
  void Parse(const std::vector<std::string>& arguments);
  // Throws kUsage with the verb's usage line if a required flag has no value.
  void CheckRequired(std::string_view usage) const;

  const std::string& verb() const { return verb_; }
  std::span<const Flag> flags() const { return flags_; }
  const Flags& values() const { return values_; }
  size_t most_words() const { return most_words_; }

 private:
  using Setter = std::function<void(const Flags&)>;
  // Adds a flag. Parse calls `setter`, which sets the flag's variable, even if the flag was not
  // given.
  Declared Declare(std::string_view name, FlagKind kind, std::string_view metavar,
                   std::string fallback, std::string_view help, Setter setter);
  // Stores a text as long as the set lives, and returns a view of it.
  std::string_view Keep(std::string text) { return texts_.emplace_back(std::move(text)); }

  std::string verb_;
  std::string_view group_;
  std::vector<Flag> flags_;
  std::vector<Setter> setters_;
  std::deque<std::string> texts_;  // what the views of flags_ refer to
  std::vector<std::string>* words_ = nullptr;
  size_t most_words_ = 0;
  Flags values_;
};

template <class E>
FlagSet::Declared FlagSet::BindChoice(E* variable, std::string_view name, std::string_view metavar,
                                      std::vector<std::pair<std::string_view, E>> choices,
                                      std::string_view help) {
  std::string names, fallback;
  for (const auto& [text, value] : choices) {
    names += (names.empty() ? "" : "|") + std::string(text);
    if (value == *variable) fallback = text;
  }
  const std::string key(name);
  Declared declared = Declare(name, FlagKind::kText, metavar, fallback, help,
                              [variable, key, choices](const Flags& flags) {
                                for (const auto& [text, value] : choices) {
                                  if (flags.Text(key) == text) *variable = value;
                                }
                              });
  declared.Choices(Keep(std::move(names)));
  return declared;
}

// The name and the value of one argument that begins with a dash.
struct FlagText {
  std::string name;
  std::string value;
  bool has_value = false;
};

// Splits "--name=value" or "-name" into its parts, with '_' for '-' in the name. Returns false for
// a word, for "-" and for a negative number. "--" gives an empty name.
bool SplitFlag(const std::string& argument, FlagText* out);

// Returns the flag of the table with this name or alias; "noX" finds the switch X. Returns null if
// there is none.
const Flag* FindFlag(std::span<const Flag> table, const std::string& name);

// Returns the flags of the table that differ from their default, as a command line would give them:
// "--gpu=0", "--ranks=2". Leaves out repeated flags.
std::vector<std::string> GivenFlags(std::span<const Flag> table, const Flags& flags);

// Parses as FlagSet::Parse does, for a table of flags without variables. Neither expands flag files
// nor checks required flags.
Flags ParseFlags(std::string_view verb, std::span<const Flag> table,
                 const std::vector<std::string>& arguments);

}  // namespace trainer

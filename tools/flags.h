#pragma once
// The flags of one verb: what there is, and what a command line says about it.
//
// Spelling as in gflags: --flag=value, --flag value, with one dash or two; --flag, --noflag and
// --flag=false for switches; "--" ends the flags. A flag given twice has its last value,
// unless its kind says otherwise.

#include <cstdint>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace trainer {

// kEach may be given many times and keeps every value.
enum class FlagKind { kText, kWhole, kSwitch, kEach };

struct Flag {
  std::string_view name;
  FlagKind kind = FlagKind::kText;
  std::string_view value = "";     // what stands for the value in help: "FILE"
  std::string_view fallback = "";  // the value when it is not given
  std::string_view help = "";
  bool required = false;
  bool hidden = false;            // left out of help
  std::string_view choices = "";  // "TRAIN|TEST": the only values, "" for any
  // With a single choice, how to give another value: "to go on from a file give --snapshot="
  std::string_view otherwise = "";
  std::string_view also = "";   // another name that it goes by
  std::string_view bare = "";   // its value where it stands alone: --gpu; "": it must have one
  std::string_view group = "";  // the heading of help that it stands under: "ranks"
  // Bounds of a whole number.
  int64_t min = 0;
  int64_t max = std::numeric_limits<int32_t>::max();
};

// Appends `more` to `flags`; those without a group get this one.
void AddFlags(std::string_view group, std::vector<Flag> more, std::vector<Flag>* flags);

// Checked values. The members throw kInternal for a name that the verb does not have.
class Flags {
 public:
  const std::string& Text(std::string_view name) const;
  int Whole(std::string_view name) const;
  bool Switch(std::string_view name) const;
  // Whether it has a value that is not empty, its fallback included.
  bool Has(std::string_view name) const { return !Text(name).empty(); }
  // A list "a, b,c" without blanks and empty items.
  std::vector<std::string> List(std::string_view name) const;
  // Every value of a kEach flag, in order.
  const std::vector<std::string>& Each(std::string_view name) const;
  // What is no flag, in order.
  const std::vector<std::string>& words() const { return words_; }

 private:
  friend class FlagParser;
  std::map<std::string, std::string, std::less<>> values_;
  std::map<std::string, std::vector<std::string>, std::less<>> each_;
  std::vector<std::string> words_;
};

// One argument that begins with a dash, taken apart.
struct FlagText {
  std::string name;
  std::string value;
  bool has_value = false;
};

// False for a word, for "-" and for a negative number. "--" gives an empty name.
bool SplitFlag(const std::string& argument, FlagText* out);

// The flag of that name in the table; "noX" finds the switch X. Null when there is none.
const Flag* FindFlag(std::span<const Flag> table, const std::string& name);

// Reads `arguments` (without program and verb). `verb` is for messages. Throws kUsage for: a flag
// that is not in the table (naming the nearest), a missing or impossible value.
Flags ParseFlags(std::string_view verb, std::span<const Flag> table,
                 const std::vector<std::string>& arguments);

// The flags that every verb takes: those of glog, and --color. `ApplyLogFlags` hands glog's that
// were given to gflags; call it before InitLogging.
std::span<const Flag> LogFlags();
void ApplyLogFlags(const Flags& flags);

}  // namespace trainer

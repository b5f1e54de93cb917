#pragma once
// A file of choices that were measured once, for later runs and other processes. A line each:
// checksum, what the choice holds for, key and value, with tabs between. Lines are only added,
// under a lock; one that is damaged is passed over, and the file then written anew without it.

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace trainer::cuda {

// Reads the file again where it has grown. Trouble with it stops nothing: without the file choices
// are made anew. Used by one thread; several objects and processes may have one file.
class AlgorithmFile {
 public:
  // `path`: "" for none. `identity`: all that a choice depends on beside the key: GPU, driver,
  // library. `asked`: the user named the file, so that trouble is a warning, once.
  AlgorithmFile(std::string path, std::string identity, bool asked);

  std::optional<std::string> Find(const std::string& key);
  // Kept in memory in any case. Neither has tabs or newlines in it.
  void Add(const std::string& key, const std::string& value);

  // While it lives, nobody else has a turn with this file: who must measure takes one, looks again
  // whether somebody else has measured meanwhile, measures, adds. Ends its wait after a minute, for
  // one that was stopped in its turn; where there can be no lock it is nothing.
  class Turn {
   public:
    explicit Turn(AlgorithmFile& file);
    ~Turn();
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    AlgorithmFile& file_;
    bool outer_;  // not within another turn of this object's
    int lock_ = -1;
  };

 private:
  void Refresh();
  // Takes what is whole of `text`; whether all is.
  bool Take(std::string_view text);
  void Mend();
  void Tell(const std::string& what);

  std::string path_, identity_;
  bool asked_, told_ = false, in_turn_ = false;
  std::map<std::string, std::string> known_;
  // How far which file was read.
  unsigned long inode_ = 0;
  long read_ = 0;
};

}  // namespace trainer::cuda

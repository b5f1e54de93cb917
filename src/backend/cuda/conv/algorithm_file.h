#pragma once
// A file of measured choices, shared with later runs and other processes. Each line holds,
// separated by tabs: checksum, identity, key and value. Lines are only appended, under a lock. A
// damaged line is skipped, and the file is then rewritten without it.

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace trainer::cuda {

// Reads the file again when it has grown. Errors never stop the run: without the file, choices are
// measured again. Used by one thread; several objects and processes may share a file.
class AlgorithmFile {
 public:
  // `path`: "" for no file. `identity`: everything that a choice depends on in addition to the key:
  // GPU, driver, library. `asked`: the user named the file, so errors are logged as one warning.
  AlgorithmFile(std::string path, std::string identity, bool asked);

  // Returns the value that was stored for a key and this identity, by this or another process, or
  // nothing.
  std::optional<std::string> Find(const std::string& key);
  // Stores the value in memory and, if possible, in the file. Neither argument may contain tabs or
  // newlines.
  void Add(const std::string& key, const std::string& value);

  // A lock on the file. Before measuring, take a turn and call Find again, because another process
  // may have measured meanwhile; then measure and Add. The wait ends after a minute, in case the
  // holder was stopped. If the file cannot be locked, a turn does nothing.
  class Turn {
   public:
    // Waits for the lock.
    explicit Turn(AlgorithmFile& file);
    ~Turn();
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    AlgorithmFile& file_;
    bool outer_;  // not nested in another turn of this object
    int lock_ = -1;
  };

 private:
  // Reads the file again if it has changed. Does without it from now on if it cannot be read or is
  // not such a file.
  void Refresh();
  // Reads the valid lines of `text` and returns whether all lines are valid.
  bool ReadLines(std::string_view text);
  // Rewrites the file with its valid lines.
  void RewriteValidLines();
  // Logs, once for this object, why the file cannot be used.
  void LogUnusable(const std::string& what);

  std::string path_, identity_;
  bool asked_, told_ = false, in_turn_ = false;
  std::map<std::string, std::string> known_;
  // The file's inode, and how many bytes of it were read.
  unsigned long inode_ = 0;
  long read_ = 0;
};

}  // namespace trainer::cuda

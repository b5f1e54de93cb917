#pragma once
// Declares the base classes of the tasks of `trainer dataset`.

#include <optional>
#include <string>
#include <vector>

#include "flag_groups.h"
#include "trainer/cli/verb.h"
#include "trainer/datasets/from_images.h"

namespace trainer {

// A task of `trainer dataset`. Declare binds --db_lock and the flags that DeclareTask adds. Run
// checks the words, removes temporary files if a signal ends the process, and calls RunTask.
class DatasetVerb : public Verb {
 public:
  DatasetVerb(size_t least_words, size_t most_words)
      : least_words_(least_words), most_words_(most_words) {}
  void Declare(FlagSet& flags) final;
  int Run() final;

 protected:
  // Declares the flags of the task.
  virtual void DeclareTask(FlagSet& flags) = 0;
  // Does the task. The number of words was checked, and a signal that ends the process removes
  // temporary files.
  virtual void RunTask() = 0;
  // Returns the files that the task writes and that are not among the words.
  virtual std::vector<std::string> OutputFiles() const { return {}; }

  // Declares --backend=lmdb|leveldb.
  void DeclareBackend(FlagSet& flags);
  // Declares --threads.
  void DeclareThreads(FlagSet& flags);
  // Declares --write_crc.
  void DeclareWriteCrc(FlagSet& flags);
  // Declares --shard_size, the size of a tar file.
  void DeclareShardSize(FlagSet& flags);

  const std::vector<std::string>& words() const { return words_; }
  // Returns "LMDB" or "LEVELDB".
  const std::string& backend() const { return backend_; }
  // Returns --threads, or as many as this process may use.
  int threads() const;
  bool write_crc() const { return write_crc_; }
  // Returns the options for a set at `path`, with --backend and --shard_size. Throws kUsage for a
  // text that is not a size.
  WriteOptions OutputAt(const std::string& path) const;
  // With --write_crc, writes the checksums of a set that was just made, and prints the file's name.
  // Throws kData if a record is bad.
  void WriteChecksums(const std::string& path) const;

 private:
  size_t least_words_, most_words_;
  std::string name_;
  std::vector<std::string> words_;
  std::string backend_ = "LMDB";
  int threads_ = 0;
  bool write_crc_ = false;
  std::string shard_size_;
  DbLock db_lock_ = DbLock::kAuto;
};

// The tasks that make sets of image files: images, pack and tar.
class ImageSetVerb : public DatasetVerb {
 public:
  ImageSetVerb() : DatasetVerb(2, 3) {}

 protected:
  void DeclareTask(FlagSet& flags) override;
  std::vector<std::string> OutputFiles() const override;
  // Returns the options that the words and the common flags give: folder, list (the second of three
  // words) and output.
  ImagesOptions Options() const;
  // Makes the set and prints what was made.
  void Write(const ImagesOptions& options) const;
  bool force() const { return force_; }

 private:
  bool gray_ = false, shuffle_ = false, force_ = false;
  int seed_ = 1;
  std::string validation_, validation_path_, labels_;
};

}  // namespace trainer

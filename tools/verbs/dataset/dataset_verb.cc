#include "dataset_verb.h"

#include <algorithm>
#include <iostream>

#include "trainer/base/error/error.h"
#include "trainer/base/file/file.h"
#include "trainer/base/file/temp_remover.h"
#include "trainer/base/text/table.h"
#include "trainer/base/text/text.h"
#include "trainer/base/thread/threads.h"
#include "trainer/datasets/verify.h"

namespace trainer {
namespace {

// Adds the folders in which a task may have temporary files for the set or file `path`: the path
// itself, in case it is a folder, and the folder that contains it.
void AddFolders(std::string path, std::vector<std::string>* folders) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  folders->insert(folders->end(), {path, FolderOf(path)});
}

}  // namespace

void DatasetVerb::Declare(FlagSet& flags) {
  name_ = flags.verb();
  flags.BindWords(&words_, most_words_);
  DeclareTask(flags);
  DeclareDbLock(flags, &db_lock_);
}

int DatasetVerb::Run() {
  if (words_.size() < least_words_) {
    throw Error(ErrorCode::kUsage, Join("usage: ", VerbRegistry::Get().PageOf(name_).usage));
  }
  if (std::ranges::count(words_, "") > 0) {
    throw Error(ErrorCode::kUsage,
                "one of the file names is empty (''); is a shell variable not set?");
  }
  SetDbLock(db_lock_);
  std::vector<std::string> folders;
  for (const std::string& word : words_) AddFolders(word, &folders);
  for (const std::string& file : OutputFiles()) folders.push_back(FolderOf(file));
  const TempRemover temp_remover(folders);
  RunTask();
  return 0;
}

void DatasetVerb::DeclareBackend(FlagSet& flags) {
  flags.BindChoice<std::string>(&backend_, "backend", "lmdb|leveldb",
                                {{"lmdb", "LMDB"}, {"leveldb", "LEVELDB"}},
                                "which kind of database to write");
}

void DatasetVerb::DeclareThreads(FlagSet& flags) {
  flags
      .Bind(&threads_, "threads", "N",
            "number of threads that decode and encode; 0: one for each core that this process may "
            "use")
      .Range(0, 1024);
}

void DatasetVerb::DeclareWriteCrc(FlagSet& flags) {
  flags.Bind(&write_crc_, "write_crc", "",
             "write the checksums of the records, in place of older ones");
}

void DatasetVerb::DeclareShardSize(FlagSet& flags) {
  flags.Bind(&shard_size_, "shard_size", "SIZE",
             "tar files: start a new file (NAME-000000.tar, NAME-000001.tar, ...) at this size");
}

int DatasetVerb::threads() const { return threads_ > 0 ? threads_ : AvailableThreads(); }

WriteOptions DatasetVerb::OutputAt(const std::string& path) const {
  WriteOptions output{path, backend_};
  if (shard_size_.empty()) return output;
  const std::optional<uint64_t> bytes = ParseBytes(shard_size_);
  if (!bytes || *bytes == 0) {
    throw Error(ErrorCode::kUsage, Join("--shard_size=", EscapeControl(shard_size_),
                                        ": not a size; write 256MiB, 1GiB, ..."));
  }
  output.shard_bytes = *bytes;
  return output;
}

void DatasetVerb::WriteChecksums(const std::string& path) const {
  if (!write_crc_) return;
  const VerifyReport report = VerifyRecords(path, {.threads = threads(), .write_crc = true});
  if (report.bad > 0) throw Error(ErrorCode::kData, report.errors.front());
  std::cout << path << ": checksums " << report.checksums << "\n";
}

void ImageSetVerb::DeclareTask(FlagSet& flags) {
  DeclareBackend(flags);
  DeclareSeed(flags, &seed_, "seed of the order and of the choice for --val");
  DeclareThreads(flags);
  DeclareWriteCrc(flags);
  DeclareShardSize(flags);
  flags.Bind(&force_, "force", "", "replace the mean file if it already exists");
  flags.Bind(&gray_, "gray", "", "store 1 channel instead of 3");
  flags.Bind(&shuffle_, "shuffle", "", "write the images in a random order");
  flags.Bind(&validation_, "val", "PART",
             "put this part of each class into a second set: 10%, 0.1, or 500 images in total");
  flags.Bind(&validation_path_, "val_out", "PATH", "path of the second set");
  flags.Bind(&labels_, "labels", "FILE", "file for the names of the classes");
}

std::vector<std::string> ImageSetVerb::OutputFiles() const {
  std::vector<std::string> files = {validation_path_, labels_};
  std::erase(files, "");
  return files;
}

ImagesOptions ImageSetVerb::Options() const {
  ImagesOptions options;
  options.root = words()[0];
  options.list = words().size() == 3 ? words()[1] : "";
  options.output = OutputAt(words().back());
  options.gray = gray_;
  options.shuffle = shuffle_;
  options.seed = static_cast<uint64_t>(seed_);
  options.threads = threads();
  options.validation = ParseSplit("val", validation_);
  options.validation_path = validation_path_;
  options.labels = labels_;
  return options;
}

void ImageSetVerb::Write(const ImagesOptions& options) const {
  const ImagesResult result = WriteImages(options);
  std::cout << options.output.path << ": " << result.records << " records\n";
  if (!result.validation_path.empty()) {
    std::cout << result.validation_path << ": " << result.validation_records << " records\n";
  }
  if (result.skipped > 0) std::cout << "skipped: " << result.skipped << " unreadable files\n";
  if (!result.labels.empty()) {
    std::cout << result.labels << ": " << result.classes.size() << " classes\n";
    Table table({"label", "class", "records", "for validation"});
    for (const ImagesResult::Class& one : result.classes) {
      table.Add({Join(one.label), EscapeControl(one.name), Join(one.records),
                 Join(one.validation_records)});
    }
    std::cout << table.ToString();
  }
  WriteChecksums(options.output.path);
  if (!result.validation_path.empty()) WriteChecksums(result.validation_path);
}

}  // namespace trainer

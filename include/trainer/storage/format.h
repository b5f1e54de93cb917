#pragma once
// The formats of sets of records: LMDB, LevelDB, tar, HDF5 and NumPy.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace trainer {

class Cursor;
class DbWriter;

struct Format {
  const char* name;    // "LMDB": as data_param's backend, --backend and reports name it
  const char* marker;  // the file that marks a folder of this format; "": its sets are files
  std::unique_ptr<Cursor> (*open)(const std::string& path);
  // Creates an empty database in an existing folder. Null for formats that are not databases.
  std::unique_ptr<DbWriter> (*create)(const std::string& folder);
};

// Returns the format of that name, or null.
const Format* FindFormat(std::string_view name);

// Returns the format whose marker file is in the folder, or null.
const Format* FormatOfFolder(const std::string& folder);

// Returns the name of the format of the set at `path`, or of a new set with that name. HDF5 is a
// file, or a .txt that lists some; NUMPY is a path of OpenArrayFile; TAR is a file, a pattern of
// names, or a text file that lists some. Returns LMDB if nothing exists there and the name has no
// extension, so that opening it explains the error. Throws kNoInput for a folder without a
// database, and as HoldsTarShards does.
std::string DetectFormat(const std::string& path);

// Returns the files of the set at `path`, without locks and logs. Throws as ExpandShards does.
std::vector<std::string> FilesOfSet(const std::string& path);

// Whether the name is the name of an HDF5 file.
bool IsHdf5Name(const std::string& path);

}  // namespace trainer

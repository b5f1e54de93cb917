#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "trainer/run/new_project/net_templates.h"

namespace trainer {

// The values of the flags of `trainer new`.
struct NewProjectOptions {
  std::string folder;        // of the new files
  std::string data;          // a training set, a folder with both sets, or a folder of images
  std::string test_data;     // "": next to the training set
  std::string net_template;  // "": ChooseTemplate
  int size = 96;             // height and width of converted images
  int epochs = 0;            // 0: 40 for a small set, 20 for a larger one
  bool replace = false;
};

// A net, a solver and a deploy net for a data set.
struct NewProject {
  std::string folder;
  std::string labels;  // file with the class names, if images were converted
  size_t label_count = 0;
  ProjectData data;
  TemplateSettings settings;
  int64_t epochs = 0;

  // Return the paths of the three files in `folder`.
  std::string net() const;
  std::string solver() const;
  std::string deploy() const;
};

// Looks for the test set of a training set. Replaces the last "train" in the path `train` by
// "test", then by "val", and returns the first of these paths for which `is_set` returns true, or
// "".
std::string FindTestSet(const std::string& train, bool (*is_set)(const std::string& path));

// Converts images if necessary, measures the training set and writes the files. Throws kUsage if
// the test set is missing, if the records are not images, or if the template does not fit;
// kCannotCreate if a file exists and `replace` is not set; and as WriteImages and RecordScan.
NewProject CreateProject(const NewProjectOptions& options);

// Describes the data and the files, and says which commands come next.
std::string ToText(const NewProject& project);

}  // namespace trainer

#pragma once
// The schema of nets and solvers as JSON, for editors and other programs.

#include <string>
#include <vector>

#include "trainer/base/text/json.h"

namespace trainer {

// Returns an object with a member for each of these messages and for each message that their fields
// contain: {"ReLUParameter": {"comment": ..., "fields": [{"name": ..., "type": ..., "default": ...,
// "comment": ...}]}}. DescribeMessage must accept the names.
Json MessagesJson(const std::vector<std::string>& names);

}  // namespace trainer

#pragma once
// The schema of nets and solvers as JSON, for editors and other programs.

#include <string>
#include <vector>

#include "trainer/base/text/json.h"

namespace trainer {

// An object with a member for each of these messages and for each message that their fields hold:
// {"ReLUParameter": {"comment": ..., "fields": [{"name": ..., "type": ..., "default": ...,
// "comment": ...}]}}. Names are those that DescribeMessage accepts.
Json MessagesJson(const std::vector<std::string>& names);

}  // namespace trainer

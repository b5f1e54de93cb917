#pragma once
// For the verbs that print JSON.

#include "trainer/base/json.h"

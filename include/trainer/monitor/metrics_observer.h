#pragma once

#include <memory>
#include <string>

#include "trainer/monitor/observer.h"

namespace trainer {

// Makes an observer that writes metrics.jsonl, one JSON object a line, and metrics.csv with
// iter,time,name,value. A run that resumes from iteration N first removes later lines, which a
// previous start wrote after its last snapshot.
std::unique_ptr<TrainingObserver> MakeMetricsObserver(const std::string& folder);

}  // namespace trainer

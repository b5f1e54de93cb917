#pragma once

#include <optional>
#include <string>

#include "trainer/monitor/run_metrics.h"

namespace trainer {

// Returns the card of a run as a table: its starts, seed, data, weights, libraries, time and
// energy. Leaves out what other parts of the page show. With `carbon`, grams of CO2 per kWh, adds
// the CO2 of the energy. "" if the run's folder has no card, or a damaged one.
std::string CardHtml(const RunMetrics& run, std::optional<double> carbon);

}  // namespace trainer

#pragma once
// Random search: trials whose settings are drawn. Several processes, also of several machines, may
// share its folder, which holds all that they must know.

#include <cstddef>
#include <string>
#include <vector>

#include "trainer/run/search/grid_search.h"
#include "trainer/run/search/trial_report.h"

namespace trainer {

// Trains trials of the search until none is left that this process could take; other processes may
// still be training theirs. A trial is taken by its lock (SnapshotLock), so that two processes
// never train one trial, and a trial of a process that died is taken again. Trains the runs of a
// trial one after the other; each resumes from its newest snapshot.
//
// With options.stops_early (asynchronous successive halving: Li et al., arXiv:1810.05934), a trial
// trains for a ninth of its iterations, continues to a third if it is among the best third of the
// trials that got so far, and from there to the end by the same rule. It continues from its exact
// snapshot, and its learning rate follows max_iter from the start.
//
// Returns as RunTrials does. A trial that failed before this call is tried once again. Throws as
// RunTrials does, and kCannotCreate if the folder has another search.
int RunSearch(const Grid& grid, const GridOptions& options, const GridSearchOptions& search);

// Sets the deadline of search.max_wall, and calls RunTrials for a grid and RunSearch for a random
// search.
int RunSweep(const Grid& grid, const GridOptions& options, GridSearchOptions search);

// Returns whether `path` is the folder of a random search.
bool IsSearchFolder(const std::string& path);

// Returns the results of the trials that have begun. Trials that trained for more of their
// iterations come first. Throws kData if a file of the search is damaged, and as ReadTrialResult.
TrialReport ReadSearch(const std::string& path);

// Returns the folders of the runs of the best trials that have written metrics, at most `most`.
std::vector<std::string> BestRunFolders(const TrialReport& search, size_t most);

// Returns the results of a grid's trials, or of the random search in the grid's folder.
TrialReport ReadSweep(const Grid& grid, const GridOptions& options);

}  // namespace trainer

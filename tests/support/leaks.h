// How a process that a test forked ends: with _exit, since exit handlers are the test's business,
// and so without the check of LeakSanitizer that those would run.
#pragma once

namespace lockstep::test {

// Ends this process with `status`, or as leaked() tells where LeakSanitizer finds that it lost
// memory; what it lost is listed on stderr. Builds without AddressSanitizer look for nothing. The
// process must have been forked by one without other threads, whose memory would count as lost.
[[noreturn]] void end_process(int status);

// Whether a process, whose status waitpid gave, lost memory.
bool leaked(int status);

}  // namespace lockstep::test

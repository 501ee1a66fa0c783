// Who is still there: each process of a group holds a lock on its rank's byte of the control
// segment, and the kernel drops it when the process dies, however it dies.
#pragma once

#include "comm/segment.h"

#include <sys/types.h>

#include <memory>

namespace lockstep::comm {

class Presence {
 public:
  // Takes `rank`'s lock. A POSIX record lock, not an open-file-description lock: a forked child
  // must not keep its dead parent alive. Throws SystemError.
  Presence(std::shared_ptr<Segment> segment, int rank);

  // The process of another rank; undefined for one's own.
  struct Holder {
    bool alive = true;
    pid_t process = 0;  // 0 where it is not visible from here
  };
  Holder holder(int rank) const;

 private:
  std::shared_ptr<Segment> segment_;
};

}  // namespace lockstep::comm

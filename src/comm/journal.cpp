#include "comm/journal.h"

#include "comm/control.h"
#include "lockstep/error.h"

#include <unistd.h>

namespace lockstep::comm {

Journal::Journal(World world) : world_(std::move(world)), process_(::getpid()) {
  world_.table.arrive(world_.rank, process_);
  world_.table.beat(world_.rank, now_ns());
}

Journal::~Journal() {
  if (process_ == ::getpid()) {
    world_.table.leave(world_.rank);
  }
}

Whereabouts Journal::where(int rank) const {
  Whereabouts where = world_.table.read(rank);
  if (world_.presence == nullptr) {
    return where;
  }
  if (rank == world_.rank) {
    where.activity = ProcessState::Activity::running;
    return where;
  }
  const Presence::Holder holder = world_.presence->holder(rank);
  if (!holder.alive) {
    where.activity = ProcessState::Activity::gone;
    return where;
  }
  where.process = holder.process;  // as seen from here
  if (holder.process > 0) {
    if (const auto state = state_of(holder.process)) {
      where.activity = state->activity;
    }
  }
  return where;
}

void Journal::record_to(const std::string& folder) {
  const std::lock_guard lock(opening_);
  if (owned_ != nullptr) {
    if (owned_->folder() != folder) {
      throw UsageError("record_flight: already records to '" + owned_->folder() +
                       "', can't record to '" + folder + "' too; name one folder");
    }
    return;
  }
  owned_ = std::make_unique<FlightRecorder>(
      folder, FlightRecorder::Identity{world_.id, world_.rank, ranks()});
  recorder_.store(owned_.get(), std::memory_order_release);
}

std::string Journal::folder() const {
  const FlightRecorder* open = recorder();
  return open == nullptr ? "" : open->folder();
}

void Journal::enter(FlightRecord& record) {
  record.number = entered_.fetch_add(1, std::memory_order_relaxed) + 1;
  record.step = step_.load(std::memory_order_relaxed);
  world_.table.enter(world_.rank, record);
  if (FlightRecorder* open = recorder()) {
    open->enter(record);
  }
}

void Journal::note_start(FlightRecord& record) {
  if (FlightRecorder* open = recorder()) {
    record.started_ns = now_ns();
    open->update(record);
  }
}

void Journal::note_steps(const FlightRecord& record) {
  if (FlightRecorder* open = recorder()) {
    open->update(record);
  }
}

void Journal::note_finish(FlightRecord& record) {
  if (FlightRecorder* open = recorder()) {
    record.finished_ns = now_ns();
    open->update(record);
  }
}

void Journal::leave(FlightRecord& record, std::int64_t now_ns) {
  record.left_ns = now_ns;
  world_.table.leave_operation(world_.rank, record);
  if (FlightRecorder* open = recorder()) {
    open->update(record);
    open->beat(now_ns);
  }
}

void Journal::wait_for(const FlightRecord& record, std::int64_t since_ns) {
  world_.table.wait_for(world_.rank, record, since_ns);
  if (FlightRecorder* open = recorder()) {
    open->wait_for(record.number, since_ns);
  }
}

void Journal::stop_waiting() {
  world_.table.stop_waiting(world_.rank);
  if (FlightRecorder* open = recorder()) {
    open->stop_waiting();
  }
}

void Journal::beat(std::int64_t now_ns) {
  world_.table.beat(world_.rank, now_ns);
  if (FlightRecorder* open = recorder()) {
    open->beat(now_ns);
  }
}

void Journal::fail(std::string_view text) {
  if (FlightRecorder* open = recorder()) {
    open->fail(text);
  }
}

}  // namespace lockstep::comm

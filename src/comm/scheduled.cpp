#include "comm/scheduled.h"

#include "base/invariant.h"
#include "comm/copy.h"

#include <algorithm>

namespace lockstep::comm {
namespace {

Reduction reduction_of_part(const Reduction& reduction, const ScheduledPart& part) {
  Reduction own = reduction;
  own.round_to = part.round_to;
  return own;
}

std::int64_t bytes_of(const Pieces& pieces) {
  std::int64_t bytes = 0;
  for (const Piece& piece : pieces) {
    bytes += piece.bytes;
  }
  return bytes;
}

}  // namespace

ScheduledOperation::ScheduledOperation(Call call, Transport& transport, int rank, int ranks)
    : Operation(call.fingerprint),
      call_(std::move(call)),
      transport_(transport),
      rank_(rank),
      ranks_(ranks) {
  for (const ScheduledPart& part : call_.parts) {
    combiners_.emplace_back(part.dtype, part.result, reduction_of_part(call_.reduction, part));
  }
}

bool ScheduledOperation::run(std::int64_t, Traffic& traffic) {
  while (part_ < call_.parts.size()) {
    switch (state_) {
      case State::starts:
        begin_part();
        state_ = State::posts;
        break;
      case State::posts:
        if (slice_ == slices_) {
          end_part();
          state_ = State::starts;
        } else if (round_ == call_.schedule.size()) {
          end_slice();
        } else {
          post(traffic);
          state_ = State::moves;
        }
        break;
      case State::moves:
        transport_.progress();
        if (!moved()) {
          return false;
        }
        end_round();
        state_ = State::posts;
        break;
    }
  }
  return true;
}

void ScheduledOperation::begin_part() {
  const ScheduledPart& part = call_.parts[part_];
  copy_bytes(part.before.to, part.before.from, part.before.bytes);
  const std::int64_t fits = kSliceBytes / (ranks_ * size_of(part.dtype));
  slice_elements_ = std::max(kGranule, fits / kGranule * kGranule);
  slice_ = 0;
  slices_ = (block(0).size() + slice_elements_ - 1) / slice_elements_;
  round_ = 0;
}

void ScheduledOperation::end_part() {
  const ScheduledPart& part = call_.parts[part_];
  copy_bytes(part.after.to, part.after.from, part.after.bytes);
  ++part_;
}

void ScheduledOperation::end_slice() {
  if (const Range own = within(block(rank_).size()); call_.on_reduced && !own.empty()) {
    call_.on_reduced(part_, block(rank_).begin + own.begin, own.size(), held(rank_, Form::result));
  }
  round_ = 0;
  ++slice_;
}

void ScheduledOperation::post(Traffic& traffic) {
  const Round& round = call_.schedule[round_];
  for (const Transfer& transfer : round.receives) {
    Pieces pieces;
    for (const int index : transfer.blocks) {
      pieces.push_back(received(index, transfer.form, transfer.peer));
    }
    if (const std::int64_t bytes = bytes_of(pieces); bytes > 0) {
      receives_.push_back({transfer.peer, transport_.receive(transfer.peer, std::move(pieces))});
      traffic.received += bytes;
    }
  }
  for (const Transfer& transfer : round.sends) {
    Pieces pieces;
    for (const int index : transfer.blocks) {
      pieces.push_back(sent(index, transfer.form));
    }
    if (const std::int64_t bytes = bytes_of(pieces); bytes > 0) {
      sends_.push_back({transfer.peer, transport_.send(transfer.peer, std::move(pieces))});
      traffic.sent += bytes;
    }
  }
}

bool ScheduledOperation::moved() const {
  return std::ranges::all_of(receives_,
                             [&](const Posted& posted) {
                               return transport_.received(posted.peer) >= posted.number;
                             }) &&
         std::ranges::all_of(sends_, [&](const Posted& posted) {
           return transport_.sent(posted.peer) >= posted.number;
         });
}

void ScheduledOperation::end_round() {
  sends_.clear();
  receives_.clear();
  const Round& round = call_.schedule[round_];
  for (const Addition& addition : round.additions) {
    add(addition);
  }
  for (const Transfer& transfer : round.copies) {
    copy(transfer);
  }
  ++round_;
}

void ScheduledOperation::add(const Addition& addition) {
  for (const int index : addition.blocks) {
    const std::int64_t count = elements(index);
    if (count == 0) {
      continue;
    }
    std::vector<Combiner::Operand> operands;
    for (const Addend& addend : addition.addends) {
      operands.push_back(
          {addend.rank == rank_ ? held(index, addend.form) : inbox_.at({addend.rank, index}).data(),
           addend.form});
    }
    combiners_[part_].combine(operands, held(index, addition.into), addition.into, count);
  }
}

void ScheduledOperation::copy(const Transfer& transfer) {
  for (const int index : transfer.blocks) {
    const auto& from = inbox_.at({transfer.peer, index});
    copy_bytes(held(index, Form::result), from.data(), static_cast<std::int64_t>(from.size()));
  }
}

Range ScheduledOperation::within(std::int64_t block_elements) const {
  return {std::min(block_elements, slice_ * slice_elements_),
          std::min(block_elements, (slice_ + 1) * slice_elements_)};
}

Range ScheduledOperation::block(int index) const {
  const ScheduledPart& part = call_.parts[part_];
  return block_of(part.count, ranks_, index, part.granule);
}

std::byte* ScheduledOperation::scratch(std::vector<std::byte>& memory, int index, Dtype dtype) {
  const std::int64_t each = slice_elements_ * size_of(dtype);
  memory.resize(std::max(memory.size(), static_cast<std::size_t>(each * ranks_)));
  return memory.data() + index * each;
}

std::byte* ScheduledOperation::held(int index, Form form) {
  const ScheduledPart& part = call_.parts[part_];
  const Dtype dtype = combiners_[part_].dtype_of(form);
  const std::int64_t at = within(block(index).size()).begin * size_of(dtype);
  const std::int64_t begin = block(index).begin * size_of(dtype);
  if (form == Form::leaf) {
    return part.leaves + begin + at;
  }
  if (form == Form::partial) {
    return scratch(partials_, index, dtype);
  }
  if (part.transposed) {
    const std::int64_t own = block(rank_).size();
    return part.results + (index * own + within(own).begin) * size_of(dtype);
  }
  if (part.results != nullptr) {
    return part.results + begin + at;
  }
  if (index == rank_ && part.block != nullptr) {
    return part.block + at;
  }
  return scratch(results_, index, dtype);
}

Piece ScheduledOperation::sent(int index, Form form) {
  const std::int64_t bytes = elements(index) * size_of(combiners_[part_].dtype_of(form));
  return bytes == 0 ? Piece{} : Piece{held(index, form), bytes};
}

Piece ScheduledOperation::received(int index, Form form, int peer) {
  const bool transposed = call_.parts[part_].transposed;
  const std::int64_t count = elements(transposed ? rank_ : index);
  const std::int64_t bytes = count * size_of(combiners_[part_].dtype_of(form));
  if (form == Form::result) {
    return bytes == 0 ? Piece{} : Piece{held(index, form), bytes};
  }
  auto& place = inbox_[{peer, index}];
  place.resize(static_cast<std::size_t>(bytes));
  return {place.data(), bytes};
}

}  // namespace lockstep::comm

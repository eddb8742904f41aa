#include "loader/pipeline/place_filler.h"

#include <cstring>
#include <new>
#include <optional>
#include <string>

#include "shardpack/error.h"

namespace shardpack::loader {
namespace {

constexpr int kClassmateTries = 16, kAnyTries = 16;

// A record may be bad; a missing file or an option that cannot be honoured is not the record's fault, and no other
// record makes up for it.
bool IsBadRecord(const Error& error) {
  return error.code() != ErrorCode::kNotFound && error.code() != ErrorCode::kInvalidArgument;
}

std::string ShardFile(const Dataset& dataset, std::uint32_t shard) {
  const auto& shards = dataset.manifest().shards;
  if (shard < shards.size()) return shards[shard].file;
  return dataset.folder().string();
}

// As much as the index can still tell.
BadRecord Describe(const Engine& engine, const Batch::Slot& slot, std::uint64_t index, const Error& error) {
  BadRecord bad;
  bad.step = slot.step;
  bad.index = bad.delivered = index;
  bad.reason = error.reason();
  const Dataset::Place place = engine.dataset.PlaceOf(index);
  bad.record = place.record;
  bad.shard = ShardFile(engine.dataset, place.shard);
  bad.offset = error.where().offset.value_or(0);
  try {
    bad.offset = engine.dataset.Info(index).offset;
    bad.key = engine.dataset.Key(index);
  } catch (const Error&) {
    // The row or the key is what is damaged: the error's own offset stays.
  }
  return bad;
}

class Filler {
 public:
  Filler(const Engine& engine, std::uint64_t epoch, std::uint64_t sample, std::uint32_t place, Batch::Slot& slot,
         SampleDecoder& decoder, StageCosts& costs)
      : engine_(engine), epoch_(epoch), sample_(sample), place_(place), slot_(slot), decoder_(decoder), costs_(costs) {}

  // The picture of `index` under the augmentation of the planned sample.
  void Deliver(std::uint64_t index) {
    const std::int64_t label = decoder_.Produce(engine_.dataset, index, engine_.options.transform,
                                                Philox(engine_.options.seed, epoch_, sample_, kAugmentOperation),
                                                engine_.writer, image(), costs_);
    if (slot_.HasLabels()) slot_.Data<std::int64_t>(Batch::Slot::kLabels)[place_] = label;
    slot_.Data<std::int64_t>(Batch::Slot::kSourceIndices)[place_] = static_cast<std::int64_t>(index);
  }

  // Zeros, with the planned sample's label where it is known.
  void Mask() {
    std::memset(image(), 0, engine_.writer.picture_bytes());
    if (slot_.HasLabels()) slot_.Data<std::int64_t>(Batch::Slot::kLabels)[place_] = Label().value_or(0);
    slot_.Data<std::int64_t>(Batch::Slot::kSourceIndices)[place_] = static_cast<std::int64_t>(sample_);
    slot_.Data<bool>(Batch::Slot::kValid)[place_] = false;
  }

  // The first good one of a fixed sequence: classmates, then any records. Nullopt where all of them are bad.
  std::optional<std::uint64_t> Substitute() {
    Philox random(engine_.options.seed, epoch_, sample_, kSubstituteOperation);
    const std::uint64_t classmates = NumClassmates();
    for (int i = 0; i < kClassmateTries && classmates > 1; ++i) {
      const std::uint64_t k = DrawBelow(random, classmates);
      if (const auto stand_in = TryClassmate(k)) return stand_in;
    }
    for (int i = 0; i < kAnyTries; ++i) {
      const std::uint64_t index = DrawBelow(random, engine_.dataset.size());
      if (Try(index)) return index;
    }
    return std::nullopt;
  }

 private:
  std::byte* image() const { return slot_.fields[Batch::Slot::kImages].data + place_ * engine_.writer.picture_bytes(); }

  std::optional<std::int64_t> Label() const {
    try {
      return engine_.dataset.Info(sample_).label;
    } catch (const Error&) {
      return std::nullopt;
    }
  }

  std::uint64_t NumClassmates() const {
    try {
      const auto label = Label();
      return label ? engine_.dataset.NumClassmates(*label) : 0;
    } catch (const Error&) {
      return 0;  // the list of classmates is damaged: any record then
    }
  }

  std::optional<std::uint64_t> TryClassmate(std::uint64_t k) {
    try {
      const std::uint64_t index = engine_.dataset.Classmate(*Label(), k);
      if (Try(index)) return index;
    } catch (const Error&) {
      // As above, or another part of the list.
    }
    return std::nullopt;
  }

  bool Try(std::uint64_t index) {
    if (index == sample_) return false;
    try {
      Deliver(index);
      return true;
    } catch (const Error& error) {
      if (!IsBadRecord(error)) throw;
      return false;
    }
  }

  const Engine& engine_;
  const std::uint64_t epoch_, sample_;
  const std::uint32_t place_;
  Batch::Slot& slot_;
  SampleDecoder& decoder_;
  StageCosts& costs_;
};

[[noreturn]] void ThrowBad(const BadRecord& bad, ErrorCode code, const std::string& more) {
  throw Error(code, Location{bad.shard, bad.record, bad.offset}, bad.reason + more);
}

// What becomes of a place whose record is bad. Throws where the policy says so.
void FollowPolicy(const Engine& engine, const Error& error, bool valid, std::uint64_t sample, std::uint32_t k,
                  Batch::Slot& slot, Filler& filler, ChunkResult& result) {
  BadPlace bad{k, false, Describe(engine, slot, sample, error)};
  if (valid && engine.options.on_bad_record == OnBadRecord::kThrow) ThrowBad(bad.record, error.code(), "");
  bad.masked = engine.options.tail == Tail::kExact || engine.options.on_bad_record == OnBadRecord::kThrow;
  const auto stand_in = bad.masked ? std::nullopt : filler.Substitute();
  if (stand_in) {
    bad.record.delivered = *stand_in;
  } else if (!bad.masked && valid) {
    ThrowBad(bad.record, error.code(), "; no other record tried in its place was good");
  } else {
    filler.Mask();
  }
  if (valid) result.bad.push_back(std::move(bad));
}

void FillOrThrow(const Engine& engine, std::uint64_t epoch, std::uint64_t sample, std::uint32_t k, Batch::Slot& slot,
                 SampleDecoder& decoder, ChunkResult& result) {
  const bool valid = k < slot.slice.num_valid;
  slot.Data<std::int64_t>(Batch::Slot::kIndices)[k] = static_cast<std::int64_t>(sample);
  slot.Data<bool>(Batch::Slot::kValid)[k] = valid;
  Filler filler(engine, epoch, sample, k, slot, decoder, result.costs);
  std::optional<Error> bad;
  try {
    filler.Deliver(sample);
  } catch (const Error& error) {
    if (!IsBadRecord(error)) throw;
    bad = error;
  }
  if (bad) FollowPolicy(engine, *bad, valid, sample, k, slot, filler, result);
}

}  // namespace

std::uint64_t DrawBelow(Philox& random, std::uint64_t n) {
  __extension__ using Product = unsigned __int128;
  const std::uint64_t high = random.Next();
  const std::uint64_t draw = high << 32 | random.Next();
  return static_cast<std::uint64_t>((Product{draw} * n) >> 64);
}

void FillPlace(const Engine& engine, std::uint64_t epoch, std::uint64_t sample, std::uint32_t k, Batch::Slot& slot,
               SampleDecoder& decoder, ChunkResult& result) {
  try {
    FillOrThrow(engine, epoch, sample, k, slot, decoder, result);
  } catch (...) {
    if (!result.error) {
      result.error = std::current_exception();
      result.error_place = k;
    }
  }
}

}  // namespace shardpack::loader

#include "libshard/pack/image_work.h"
#include "libshard/pack/plan_builder.h"
#include "libshard/pack/task_arena.h"
#include "shardpack/threads.h"

namespace shardpack {
namespace {

// As packing works a picture, but for the proofs, which change no byte.
ImageWorkOptions WorkOptions(const PackOptions& options) {
  ImageWorkOptions work = WorkOptionsOf(options);
  work.verify = VerifyImages::kNone;
  work.large_picture_bytes = options.memory_bytes / 8;
  return work;
}

SampleWorker MakeWorker(const ImageWorkOptions& options, std::mutex& large_picture) {
  return [worker = std::make_shared<ImageWorker>(options, large_picture)](Bytes input) {
    const WorkedImage image = worker->Work(input);
    return SampleRecord{image.info.encoding, {image.bytes.begin(), image.bytes.end()}};
  };
}

}  // namespace

PlanHead WritePlan(const PackOptions& options, const std::vector<std::unique_ptr<Source>>& sources,
                   const PlanBase* base, const std::filesystem::path& scratch, const std::filesystem::path& file) {
  std::mutex large_picture;
  const ImageWorkOptions work_options = WorkOptions(options);
  SampleWork work;
  work.make_worker = [&] { return MakeWorker(work_options, large_picture); };
  work.choose = [&](const std::vector<SampleRecord>& sample, std::uint64_t records, std::uint64_t shards) {
    return ChooseCodecs(sample, records, shards, options.compression, options.zstd_level, options.dictionary_bytes);
  };
  PlanHead head;
  const int threads = options.threads > 0 ? options.threads : AvailableThreads();
  ArenaOf(threads).execute([&] { head = BuildPlan(options, sources, base, scratch, file, work); });
  return head;
}

}  // namespace shardpack

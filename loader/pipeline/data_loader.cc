#include "shardpack/loader/data_loader.h"

#include <utility>

#include "loader/pipeline/engine.h"
#include "loader/pipeline/epoch_run.h"
#include "shardpack/error.h"

namespace shardpack::loader {
namespace {

// In a child of fork() the tasks do not exist and locks may stand closed: what they belong to is left as it is.
template <typename T>
void Abandon(T owner) {
  static_cast<void>(new T(std::move(owner)));
}

}  // namespace

struct EpochIterator::Impl {
  explicit Impl(std::unique_ptr<EpochRun> r) : run(std::move(r)) {}
  ~Impl() {
    if (run->engine().IsForked()) {
      Abandon(std::move(run));
    } else {
      run->Stop();
    }
  }
  std::unique_ptr<EpochRun> run;
};

EpochIterator::EpochIterator(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
EpochIterator::EpochIterator(EpochIterator&&) noexcept = default;
EpochIterator& EpochIterator::operator=(EpochIterator&&) noexcept = default;
EpochIterator::~EpochIterator() = default;

std::uint64_t EpochIterator::num_steps() const noexcept { return impl_->run->num_steps(); }
std::optional<Batch> EpochIterator::Next() { return impl_->run->Next(); }
Report EpochIterator::report() const { return impl_->run->report(); }

struct DataLoader::Impl {
  std::shared_ptr<Engine> engine;
  ~Impl() {
    if (engine->IsForked()) Abandon(std::move(engine));
  }
};

DataLoader::DataLoader(Dataset dataset, LoaderOptions options)
    : impl_(new Impl{std::make_shared<Engine>(std::move(dataset), std::move(options))}) {}
DataLoader::~DataLoader() = default;

EpochIterator DataLoader::Epoch(std::uint64_t epoch) {
  impl_->engine->CheckProcess();
  auto run = std::make_unique<EpochRun>(impl_->engine, epoch, impl_->engine->TakeStart(epoch));
  return EpochIterator(std::make_unique<EpochIterator::Impl>(std::move(run)));
}

void DataLoader::Restore(const State& state) {
  impl_->engine->CheckProcess();
  impl_->engine->Restore(state);
}

State DataLoader::state() const { return impl_->engine->state(); }
const Dataset& DataLoader::dataset() const { return impl_->engine->dataset; }
const LoaderOptions& DataLoader::options() const { return impl_->engine->options; }
const Order& DataLoader::order() const { return impl_->engine->order; }
StepPlan DataLoader::PlanOf(std::uint64_t consumed) const {
  return MakePlan(impl_->engine->options, impl_->engine->dataset.size(), consumed);
}

}  // namespace shardpack::loader

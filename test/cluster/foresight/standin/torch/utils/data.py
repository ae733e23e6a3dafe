"""A DataLoader whose workers are forked processes, as torch's are: they take batches of indexes in the sampler's order."""
import multiprocessing


class Dataset:
    pass


class DataLoader:
    def __init__(self, dataset, sampler, batch_size, num_workers):
        self.dataset, self.sampler, self.size, self.workers = dataset, sampler, batch_size, num_workers

    def __iter__(self):
        with multiprocessing.get_context("fork").Pool(self.workers) as pool:
            batch = []
            for index in self.sampler:
                batch.append(index)
                if len(batch) == self.size:
                    yield pool.map(self.dataset.__getitem__, batch, chunksize=1)
                    batch = []
            if batch:
                yield pool.map(self.dataset.__getitem__, batch, chunksize=1)

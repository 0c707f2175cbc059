// What the simulator is measured against: one event loop a policy, on GPU counts alone.
//
//     replay_reference jobs.csv GPUS REPEATS POLICY...      jobs.csv: submit,duration,gpus by submission, no header
//
// No placement, no decision log, no attempts, no overheads, no forks: the least that gives end times. Prints for each policy
// its name, the smallest number of seconds of the loop alone, and the mean of end - submission.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <queue>
#include <set>
#include <string>
#include <utility>
#include <vector>

struct Job {
    double submit, duration;
    int gpus;
};
using Jobs = std::vector<Job>;
using Ends = std::vector<double>;
constexpr double never = std::numeric_limits<double>::infinity();

// fifo and sjf: the first job of the order that does not fit keeps all others waiting
Ends strict(const Jobs& jobs, int gpus, bool shortest) {
    Ends end(jobs.size());
    using Entry = std::pair<double, int>;
    using Heap = std::priority_queue<Entry, std::vector<Entry>, std::greater<>>;
    Heap waiting, running;
    size_t next = 0;
    while (next < jobs.size() || !running.empty()) {
        double now = running.empty() ? never : running.top().first;
        if (next < jobs.size()) now = std::min(now, jobs[next].submit);
        while (!running.empty() && running.top().first <= now) {
            gpus += jobs[running.top().second].gpus;
            running.pop();
        }
        for (; next < jobs.size() && jobs[next].submit <= now; next++)
            waiting.emplace(shortest ? jobs[next].duration : 0.0, next);
        while (!waiting.empty() && jobs[waiting.top().second].gpus <= gpus) {
            int j = waiting.top().second;
            waiting.pop();
            gpus -= jobs[j].gpus;
            end[j] = now + jobs[j].duration;
            running.emplace(end[j], j);
        }
    }
    return end;
}

// srtf: one list by remaining time; of equal ones, the one that was ahead at the last instant
Ends srtf(const Jobs& jobs, int gpus) {
    struct Key {
        double at;  // remaining time of a waiting job, end of a running one: either stays as it is
        long tie;
        int job;
        bool operator<(const Key& other) const { return at != other.at ? at < other.at : tie < other.tie; }
    };
    Ends end(jobs.size());
    std::set<Key> waiting, running;
    std::vector<double> queued(jobs.size());
    std::vector<Key> chosen, stopped;
    size_t next = 0;
    long tie = 0;
    while (next < jobs.size() || !running.empty()) {
        double now = running.empty() ? never : running.begin()->at;
        if (next < jobs.size()) now = std::min(now, jobs[next].submit);
        for (; !running.empty() && running.begin()->at <= now; running.erase(running.begin())) {
            end[running.begin()->job] = now;
            gpus += jobs[running.begin()->job].gpus;
        }
        // what this instant preempts is ahead of what it lets in
        long band = tie;
        tie += jobs.size();
        for (; next < jobs.size() && jobs[next].submit <= now; next++) {
            queued[next] = now;
            waiting.insert({jobs[next].duration, tie++, int(next)});
        }
        if (waiting.empty()) continue;
        int left = gpus;
        for (const Key& key : running) left += jobs[key.job].gpus;
        chosen.clear();
        stopped.clear();
        auto w = waiting.begin();
        auto r = running.begin();
        while (left > 0 && (w != waiting.end() || r != running.end())) {
            bool first = r == running.end() ||
                         (w != waiting.end() && (w->at < r->at - now || (w->at == r->at - now && queued[w->job] < now)));
            const Key& key = first ? *w : *r;
            bool fits = jobs[key.job].gpus <= left;
            if (fits) left -= jobs[key.job].gpus;
            if (first && fits) chosen.push_back(key);
            if (!first && !fits) stopped.push_back(key);
            first ? void(++w) : void(++r);
        }
        stopped.insert(stopped.end(), r, running.end());
        for (const Key& key : stopped) {
            running.erase(key);
            gpus += jobs[key.job].gpus;
            queued[key.job] = now;
            waiting.insert({key.at - now, band++, key.job});
        }
        for (const Key& key : chosen) {
            waiting.erase(key);
            gpus -= jobs[key.job].gpus;
            running.insert({now + key.at, tie++, key.job});
        }
    }
    return end;
}

// tiresias: two queues by attained GPU-time, each by first start; a job that has waited long enough goes back to the first
Ends tiresias(const Jobs& jobs, int gpus, double limit, double promote) {
    struct Event {
        double at;
        int kind, job, version;  // 0 end, 1 demotion, 2 promotion; void where the job has a newer version
        bool operator>(const Event& other) const {
            return at != other.at ? at > other.at : kind != other.kind ? kind > other.kind : job > other.job;
        }
    };
    struct Live {
        double remaining, ran = 0, since = 0, first = never;
        int level = 0, version = 0, place = -1;
        long pass = 0;
    };
    Ends end(jobs.size());
    std::priority_queue<Event, std::vector<Event>, std::greater<>> events;
    std::set<std::pair<double, int>> level[2];  // waiting and running jobs
    std::vector<Live> live(jobs.size());
    std::vector<int> running, chosen;
    size_t next = 0;
    long pass = 0;
    int waiting = 0;
    double now = 0;
    auto move = [&](int j, int to) {
        level[live[j].level].erase({live[j].first, j});
        live[j].level = to;
        level[to].insert({live[j].first, j});
    };
    auto leave = [&](int j) {
        running[live[j].place] = running.back();
        live[running.back()].place = live[j].place;
        running.pop_back();
        gpus += jobs[j].gpus;
        live[j].remaining -= now - live[j].since;
        live[j].ran += now - live[j].since;
        live[j].version++;
    };
    auto start = [&](int j) {
        Live& x = live[j];
        if (x.first == never) {
            level[x.level].erase({never, j});
            x.first = now;
            level[x.level].insert({now, j});
        }
        gpus -= jobs[j].gpus;
        waiting--;
        x.since = now;
        x.place = running.size();
        running.push_back(j);
        events.push({now + x.remaining, 0, j, ++x.version});
        if (x.level == 0) events.push({now + limit / jobs[j].gpus - x.ran, 1, j, x.version});
    };
    while (next < jobs.size() || !events.empty()) {
        now = events.empty() ? never : events.top().at;
        if (next < jobs.size()) now = std::min(now, jobs[next].submit);
        bool changed = false;
        for (; !events.empty() && events.top().at <= now; events.pop()) {
            auto [at, kind, j, version] = events.top();
            if (live[j].version != version) continue;
            changed = true;
            if (kind == 0) {
                leave(j);
                level[live[j].level].erase({live[j].first, j});
                end[j] = now;
            } else {
                move(j, kind == 1);
                if (kind == 2) live[j].ran = 0;
            }
        }
        for (; next < jobs.size() && jobs[next].submit <= now; next++, waiting++, changed = true) {
            live[next].remaining = jobs[next].duration;
            level[0].insert({never, int(next)});
        }
        if (!changed || waiting == 0) continue;
        int left = gpus;
        for (int j : running) left += jobs[j].gpus;
        pass++;
        chosen.clear();
        for (auto& jobs_of : level) {
            for (auto it = jobs_of.begin(); it != jobs_of.end() && left > 0; ++it) {
                int j = it->second;
                if (jobs[j].gpus > left) continue;
                left -= jobs[j].gpus;
                live[j].pass = pass;
                if (live[j].place < 0 || live[j].place >= int(running.size()) || running[live[j].place] != j)
                    chosen.push_back(j);
            }
        }
        for (size_t k = running.size(); k-- > 0;) {
            int j = running[k];
            if (live[j].pass == pass) continue;
            leave(j);
            waiting++;
            if (live[j].level > 0 && promote > 0) events.push({now + promote * live[j].ran, 2, j, live[j].version});
        }
        for (int j : chosen) start(j);
    }
    return end;
}

int main(int argc, char** argv) {
    if (argc < 5) return 2;
    Jobs jobs;
    Job job;
    std::FILE* file = std::fopen(argv[1], "r");
    if (!file) return 1;
    while (std::fscanf(file, "%lf,%lf,%d", &job.submit, &job.duration, &job.gpus) == 3) jobs.push_back(job);
    std::fclose(file);
    int gpus = std::atoi(argv[2]);
    for (int k = 4; k < argc; k++) {
        std::string policy = argv[k];
        double best = never, total = 0;
        for (int turn = std::atoi(argv[3]); turn > 0; turn--) {
            auto begin = std::chrono::steady_clock::now();
            Ends end = policy == "fifo"   ? strict(jobs, gpus, false)
                       : policy == "sjf"  ? strict(jobs, gpus, true)
                       : policy == "srtf" ? srtf(jobs, gpus)
                                          : tiresias(jobs, gpus, 3600, 8);
            best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
            total = 0;
            for (size_t j = 0; j < jobs.size(); j++) total += end[j] - jobs[j].submit;
        }
        std::printf("%s %.6f %.6f\n", policy.c_str(), best, total / jobs.size());
    }
}

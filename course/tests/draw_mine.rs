use course::book::made::{embedding, parallel, Numbers};
#[test]
fn draw() {
    let out = std::path::Path::new("/tmp/wt/out-embed");
    std::fs::create_dir_all(out).unwrap();
    for made in [&embedding::MADE, &parallel::MADE] {
        for f in made.figures { (f.draw)(&out.join(format!("{}.svg", f.name))).unwrap(); }
        for l in made.listings { let t = (l.text)().unwrap(); println!("== {}\n{t}", l.name); std::fs::write(out.join(format!("{}.txt", l.name)), t).unwrap(); }
        let mut n = Numbers::default();
        (made.numbers)(&mut n).unwrap();
        let names: Vec<_> = n.names().map(str::to_string).collect();
        for name in names { println!("{name} = {}", n.get(&name).unwrap()); }
    }
}

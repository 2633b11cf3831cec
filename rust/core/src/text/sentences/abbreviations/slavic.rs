//! Polish, Czech, Slovak, Croatian, Serbian, Russian and Ukrainian.

use super::Words;

pub(super) const POLISH: Words = Words {
    always: "dr.hab prof.dr np m.in tzn tj tzw zob św śp",
    before_name: "
        hab mgr inż płk ppłk gen kpt ppor mjr sierż ks abp kard ul al pl im pt wg n.p.m
    ",
    before_lower: "
        itd itp rr ww godz sek tys mln mld str nr n.e p.n.e ca woj pow gm wyd rys ryc poz rozdz tłum
        jw br bm cdn dn jęz ang niem łac franc ros daw
    ",
    before_number: "art lp pkt tab tel ust s t",
    units: "r zł gr tys mln mld godz min sek kg km",
    starters: "
        on ona ono oni one ja ty my wy to ten ta te ci ale i a lub oraz więc bo gdy kiedy jeśli jeżeli
        jak co kto gdzie dlaczego czy potem wtedy teraz dziś dzisiaj wczoraj jutro tu tam w na po
        przed z od nie tak już jednak też także
    ",
    labels: "witamina witaminy grupa grupy klasa część typ punkt",
    months: "
        stycznia lutego marca kwietnia maja czerwca lipca sierpnia września października listopada
        grudnia
    ",
};

pub(super) const CZECH: Words = Words {
    always: "MUDr JUDr PhDr RNDr Mgr Ing Bc Doc tzv např tj",
    before_name: "mudr judr phdr rndr sv gosp gđa nám npr",
    before_lower: "atd apod aj čís č str roč kap tis mld hod stol n.l př.n.l o.s itd tzv god mj resp",
    before_number: "obr tab tel s",
    units: "kč tis mil mld hod min sv r",
    starters: "
        on ona ono oni my vy já ty to ten ta ale a nebo když protože jak co kdo kde proč pak potom
        teď dnes včera zítra v na po před z od ne ano
    ",
    labels: "skupina část třída vitamín vitamin",
    months: "
        ledna února března dubna května června července srpna září října listopadu prosince
        januára februára marca apríla mája júna júla augusta septembra októbra novembra decembra
        siječnja veljače ožujka travnja svibnja lipnja srpnja kolovoza rujna listopada studenoga
        prosinca jan feb mar apr maj jun jul avg sep okt nov dec
    ",
};

pub(super) const RUSSIAN: Words = Words {
    always: "проф акад доц г-н г-жа т.е т.к т.н т.о напр см ср",
    before_name: "
        гр тов св им ул пер пл просп наб пос дер с.-х ген подполк кап лейт ст.лейт мл.лейт вул пр
        корп обл р-н кв г д о
    ",
    before_lower: "
        т.д т.п др гг вв н.э до.н.э стр рис табл илл прим изд ред перев авт эт тел факс доб
        янв фев февр мар апр авг сен сент окт ноя нояб дек пн вт чт пт сб англ нем
        франц лат греч рус укр итал исп яп кит букв макс прибл соотв включ искл пп ч.ч разг устар
        и.о м.б
    ",
    before_number: "гл п ст",
    units: "
        г гг в вв тыс млн млрд трлн руб коп долл грн см мм м км кг л ч мин сек с чел шт экз
    ",
    starters: "
        он она оно они я ты мы вы это этот эта эти тот та те мой моя его её ее их наш наша но а и или
        да нет не если когда как что кто где почему зачем потом затем тогда теперь сейчас сегодня
        вчера завтра здесь тут там в во на по после до перед с со из от для у о об при за к также
        однако поэтому уже ещё еще все всё так вот
        він вона воно вони ми ви це цей ця ці але й або якщо коли що хто де чому потім тепер сьогодні
    ",
    labels: "витамин витамина план группа часть тип класс пункт вариант",
    months: "",
};
